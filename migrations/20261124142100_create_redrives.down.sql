DROP TABLE redrives;
