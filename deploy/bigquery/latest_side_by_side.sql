-- How do two configurations compare at every query, in the latest run of each experiment? The view `side_by_side` has all runs.
SELECT * FROM side_by_side WHERE is_latest
