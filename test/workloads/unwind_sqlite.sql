-- One round of what a database does; the test feeds it again and again.
CREATE TABLE rows(id INTEGER PRIMARY KEY, name TEXT, amount REAL, document TEXT);
WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 3000)
INSERT INTO rows SELECT n, hex(randomblob(6)), (n * 7919) % 1000 / 3.0, json_object('n', n, 'list', json_array(n, n + 1)) FROM counter;
CREATE INDEX by_name ON rows(name);
SELECT count(*), sum(amount), max(length(name)) FROM rows WHERE name LIKE '%A%B%';
SELECT a.name, count(*) FROM rows a JOIN rows b ON a.name < b.name AND b.id % 50 = 0 GROUP BY a.name ORDER BY 2 DESC LIMIT 5;
SELECT sum(json_extract(document, '$.list[1]')) FROM rows WHERE id IN (SELECT max(id) FROM rows GROUP BY id / 7);
SELECT printf('%.3f %s', amount, name) AS text FROM rows ORDER BY substr(text, 3) LIMIT 5;
DROP TABLE rows;
