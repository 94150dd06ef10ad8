-- What did every configuration answer in the latest run of each experiment? The view `answers_of_configuration` has all runs.
SELECT * FROM answers_of_configuration WHERE is_latest
