- dashboard: leaderboard
  title: Which configuration is best?
  layout: newspaper
  preferred_viewer: dashboards-next
  description: One run of an experiment, with intervals, comparisons, slices, and what it is to be trusted for. Run is
    latest, last good (after an outage, the last run with any value), or an id. Started is for what is shown over time.

  filters:
  - name: Experiment
    title: Experiment
    type: field_filter
    default_value: ''
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: leaderboard
    field: leaderboard.experiment
  - name: Metric
    title: Metric
    type: field_filter
    default_value: ''
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: leaderboard
    listens_to_filters: [Experiment]
    field: leaderboard.metric
  - name: Run
    title: Run
    type: field_filter
    default_value: latest
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: leaderboard
    listens_to_filters: [Experiment]
    field: run_choices.run
  - name: Dialect
    title: Dialect
    type: field_filter
    default_value: ''
    allow_multiple_values: true
    required: false
    model: rankbeam
    explore: leaderboard
    listens_to_filters: [Experiment]
    field: leaderboard.dialect
  - name: Started
    title: Started
    type: field_filter
    default_value: ''
    allow_multiple_values: true
    required: false
    model: rankbeam
    explore: trend
    field: trend.started_date
  - name: Days back
    title: Days back
    type: field_filter
    default_value: '90'
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: leaderboard
    field: horizon.days

  elements:
  - name: freshness
    title: Is there a run?
    note_text: If no run began within Days back, the tiles below are empty.
    model: rankbeam
    explore: freshness
    type: looker_grid
    fields: [freshness.experiment, freshness.chosen_run]
    sorts: [freshness.experiment]
    limit: 100
    listen:
      Experiment: freshness.experiment
      Run: run_choices.run
      Days back: horizon.days
    row: 0
    col: 0
    width: 24
    height: 2
  - name: intervals
    title: Means and intervals
    note_text: The box is the interval of the mean; the whiskers hold for all configurations at once.
    model: rankbeam
    explore: leaderboard
    type: looker_boxplot
    fields: [leaderboard.configuration, leaderboard.joint_interval_low, leaderboard.interval_low,
      leaderboard.weighted_mean, leaderboard.interval_high, leaderboard.joint_interval_high]
    sorts: [leaderboard.weighted_mean desc]
    limit: 100
    listen:
      Experiment: leaderboard.experiment
      Run: run_choices.run
      Metric: leaderboard.metric
      Dialect: leaderboard.dialect
      Days back: horizon.days
    row: 2
    col: 0
    width: 12
    height: 9
  - name: leaderboard
    title: Leaderboard
    note_text: With 95% confidence, the best one is among those that may be best. Ranks are within a dialect.
    model: rankbeam
    explore: leaderboard
    type: looker_grid
    fields: [leaderboard.dialect, leaderboard.rank, leaderboard.configuration, leaderboard.weighted_mean,
      leaderboard.interval_low, leaderboard.interval_high, leaderboard.may_be_best, leaderboard.query_count,
      leaderboard.failed_count, leaderboard.lowest_mean, leaderboard.highest_mean]
    sorts: [leaderboard.dialect, leaderboard.rank]
    limit: 100
    listen:
      Experiment: leaderboard.experiment
      Run: run_choices.run
      Metric: leaderboard.metric
      Dialect: leaderboard.dialect
      Days back: horizon.days
    row: 2
    col: 12
    width: 12
    height: 9
  - name: differences
    title: Differences from the baseline
    note_text: Paired, query by query. p is corrected by Holm over all comparisons of the metric.
    model: rankbeam
    explore: differences
    type: looker_grid
    fields: [differences.configuration, differences.baseline, differences.weighted_difference,
      differences.interval_low, differences.interval_high, differences.p_holm, differences.win_count,
      differences.tie_count, differences.loss_count, differences.detectable_difference]
    filters:
      differences.slice: all
    sorts: [differences.weighted_difference desc]
    limit: 100
    listen:
      Experiment: differences.experiment
      Run: run_choices.run
      Metric: differences.metric
      Dialect: differences.dialect
      Days back: horizon.days
    row: 11
    col: 0
    width: 12
    height: 8
  - name: slices
    title: Slices
    model: rankbeam
    explore: slice_leaderboard
    type: looker_grid
    fields: [slice_leaderboard.attribute, slice_leaderboard.value, slice_leaderboard.configuration,
      slice_leaderboard.weighted_mean]
    pivots: [slice_leaderboard.configuration]
    sorts: [slice_leaderboard.attribute, slice_leaderboard.value, slice_leaderboard.configuration]
    limit: 200
    listen:
      Experiment: slice_leaderboard.experiment
      Run: run_choices.run
      Metric: slice_leaderboard.metric
      Dialect: slice_leaderboard.dialect
      Days back: horizon.days
    row: 11
    col: 12
    width: 12
    height: 8
  - name: trend
    title: Over time
    model: rankbeam
    explore: trend
    type: looker_line
    note_text: Runs over another dataset are another line, named by its fingerprint.
    fields: [trend.started_time, trend.configuration, trend.dataset_fingerprint, trend.weighted_mean]
    pivots: [trend.configuration, trend.dataset_fingerprint]
    sorts: [trend.started_time desc, trend.configuration, trend.dataset_fingerprint]
    limit: 500
    x_axis_scale: time
    show_null_points: false
    interpolation: linear
    listen:
      Experiment: trend.experiment
      Started: trend.started_date
      Metric: trend.metric
      Dialect: trend.dialect
      Days back: horizon.days
    row: 19
    col: 0
    width: 12
    height: 8
  - name: regressions
    title: Since the previous run with values, over the same dataset
    model: rankbeam
    explore: regressions
    type: looker_grid
    fields: [regressions.configuration, regressions.verdict, regressions.weighted_difference,
      regressions.interval_low, regressions.interval_high, regressions.worse_count, regressions.better_count,
      regressions.parameters_changed, regressions.previous_run_id]
    sorts: [regressions.weighted_difference]
    limit: 100
    listen:
      Experiment: regressions.experiment
      Run: run_choices.run
      Metric: regressions.metric
      Dialect: regressions.dialect
      Days back: horizon.days
    row: 19
    col: 12
    width: 12
    height: 8
  - name: queries
    title: Queries that lose most against the baseline
    note_text: Follow the id of a query to its story. Queries whose call failed are left out.
    model: rankbeam
    explore: side_by_side
    type: looker_grid
    fields: [side_by_side.query_id, side_by_side.text, side_by_side.configuration, side_by_side.baseline,
      side_by_side.value, side_by_side.baseline_value, side_by_side.difference]
    filters:
      side_by_side.difference: '<0'
    sorts: [side_by_side.difference]
    limit: 50
    listen:
      Experiment: side_by_side.experiment
      Run: run_choices.run
      Metric: side_by_side.metric
      Days back: horizon.days
    row: 27
    col: 0
    width: 24
    height: 8
  - name: coverage
    title: Queries without an answer, and why calls failed
    model: rankbeam
    explore: coverage
    type: looker_grid
    fields: [coverage.configuration, coverage.query_count, coverage.empty_count, coverage.failed_count,
      coverage.missing_count, coverage.share_failed, coverage.cut_from, coverage.invalid_count,
      coverage.permission_count, coverage.not_found_count, coverage.quota_count, coverage.timeout_count,
      coverage.unavailable_count, coverage.malformed_count, coverage.blocked_count, coverage.truncated_count,
      coverage.over_budget_count]
    sorts: [coverage.share_failed desc]
    limit: 100
    listen:
      Experiment: coverage.experiment
      Run: run_choices.run
      Dialect: coverage.dialect
      Days back: horizon.days
    row: 35
    col: 0
    width: 24
    height: 8
  - name: cost
    title: Calls, and what the ledger saved
    model: rankbeam
    explore: cost
    type: looker_column
    fields: [cost.started_date, cost.call_count, cost.ledger_hit_count, cost.failure_count]
    fill_fields: [cost.started_date]
    sorts: [cost.started_date desc]
    limit: 90
    x_axis_scale: time
    listen:
      Experiment: cost.experiment
      Started: cost.started_date
    row: 43
    col: 0
    width: 24
    height: 6
