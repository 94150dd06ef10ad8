-- What are the values of every query in the latest run of each experiment? The view `per_query` has all runs.
SELECT * FROM per_query WHERE is_latest
