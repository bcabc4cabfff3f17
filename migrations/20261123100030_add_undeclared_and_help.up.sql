-- What the check of a call's arguments found besides repairs and broken rules.
ALTER TABLE calls ADD COLUMN undeclared json; -- JSON pointers to properties that the tool's schema does not declare; NULL: none
ALTER TABLE calls ADD COLUMN help json; -- of a refused call: what helps to correct it
