-- For each day with data: the oldest numbers of processes and threads that data of this day may refer to. Numbers are
-- given in order, and after 2^32 - 1 comes 1. A number is given again only if all rows have younger numbers. 0: data of
-- this day refer to no process or thread. A row is removed after all data of its day and of earlier days.
CREATE TABLE number_day (
  day     INTEGER PRIMARY KEY,
  process INTEGER NOT NULL,
  thread  INTEGER NOT NULL
);
