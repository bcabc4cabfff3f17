DROP INDEX calls_unsuccessful;
DROP INDEX attempts_worker;
