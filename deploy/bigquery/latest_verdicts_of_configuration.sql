-- What did the judge decide in the latest run of each experiment? The view `verdicts_of_configuration` has all runs.
SELECT * FROM verdicts_of_configuration WHERE is_latest
