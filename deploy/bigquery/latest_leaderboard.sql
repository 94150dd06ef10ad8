-- Which configuration is best in the latest run of each experiment? The view `leaderboard` has all runs.
SELECT * FROM leaderboard WHERE is_latest
