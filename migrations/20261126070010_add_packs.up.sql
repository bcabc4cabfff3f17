-- Whether a worker takes packs: messages of several jobs. One of an earlier version does not say so.
ALTER TABLE workers ADD COLUMN takes_packs boolean NOT NULL DEFAULT false;
