PRAGMA journal_mode = MEMORY;
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER, product TEXT, sum REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  INSERT INTO sale SELECT i, abs(random()) % 500, 'p' || abs(random()) % 200, abs(random()) % 10000 / 100.0 FROM n;
CREATE INDEX sale_customer ON sale(customer);
SELECT customer, count(*), sum(sum) FROM sale GROUP BY customer ORDER BY 3 DESC LIMIT 3;
SELECT product, avg(sum) FROM sale WHERE product LIKE 'p1%' GROUP BY product ORDER BY 2 LIMIT 3;
SELECT a.product, count(*) FROM sale a JOIN sale b ON a.customer = b.customer AND a.id < b.id WHERE a.customer < 9 GROUP BY 1 LIMIT 3;
UPDATE sale SET sum = sum * 1.1 WHERE customer % 7 = 0;
DELETE FROM sale WHERE id % 3 = 0;
SELECT count(*), group_concat(DISTINCT substr(product, 1, 2)) FROM sale;
