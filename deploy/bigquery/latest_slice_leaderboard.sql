-- Which configuration is best in each slice, in the latest run of each experiment? The view `slice_leaderboard` has all runs.
SELECT * FROM slice_leaderboard WHERE is_latest
