-- The order of columns means nothing to any program, so it stays; only the room on pages goes back.
ALTER TABLE calls SET (fillfactor = 70);
