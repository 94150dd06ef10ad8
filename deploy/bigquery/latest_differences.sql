-- How much do configurations differ in the latest run of each experiment? The view `differences` has all runs.
SELECT * FROM differences WHERE is_latest
