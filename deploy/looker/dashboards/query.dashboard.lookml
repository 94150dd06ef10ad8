- dashboard: query
  title: The story of one query
  layout: newspaper
  preferred_viewer: dashboards-next
  description: What every configuration made of a query, which documents it found, and how that changed. Run is latest,
    last good (after an outage, the last run with any value), or an id. Started is for what is shown over time.

  filters:
  - name: Experiment
    title: Experiment
    type: field_filter
    default_value: ''
    allow_multiple_values: false
    required: false
    model: rankbeam
    explore: queries
    field: queries.experiment
  - name: Query
    title: Query
    type: field_filter
    default_value: ''
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: queries
    listens_to_filters: [Experiment]
    field: queries.query_id
  - name: Run
    title: Run
    type: field_filter
    default_value: latest
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: queries
    listens_to_filters: [Experiment]
    field: run_choices.run
  - name: Started
    title: Started
    type: field_filter
    default_value: ''
    allow_multiple_values: true
    required: false
    model: rankbeam
    explore: query_changes
    field: query_changes.started_date
  - name: Days back
    title: Days back
    type: field_filter
    default_value: '90'
    allow_multiple_values: false
    required: true
    model: rankbeam
    explore: queries
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
  - name: answers
    title: What became of it
    model: rankbeam
    explore: queries
    type: looker_grid
    fields: [queries.experiment, queries.query_id, queries.text, configurations.configuration, queries.status]
    sorts: [queries.experiment, configurations.configuration]
    limit: 100
    listen:
      Experiment: queries.experiment
      Run: run_choices.run
      Query: queries.query_id
      Days back: horizon.days
    row: 2
    col: 0
    width: 16
    height: 6
  - name: slices
    title: Its attributes
    model: rankbeam
    explore: queries
    type: looker_grid
    fields: [query_slices.name, query_slices.value]
    sorts: [query_slices.name]
    limit: 50
    listen:
      Experiment: queries.experiment
      Run: run_choices.run
      Query: queries.query_id
      Days back: horizon.days
    row: 2
    col: 16
    width: 8
    height: 6
  - name: values
    title: Its values
    model: rankbeam
    explore: queries
    type: looker_bar
    fields: [query_values.metric, configurations.configuration, query_values.average_value]
    pivots: [configurations.configuration]
    sorts: [query_values.metric, configurations.configuration]
    limit: 100
    listen:
      Experiment: queries.experiment
      Run: run_choices.run
      Query: queries.query_id
      Days back: horizon.days
    row: 8
    col: 0
    width: 12
    height: 8
  - name: differences
    title: Against the baseline
    model: rankbeam
    explore: side_by_side
    type: looker_grid
    fields: [side_by_side.metric, side_by_side.configuration, side_by_side.baseline, side_by_side.value,
      side_by_side.baseline_value, side_by_side.difference]
    sorts: [side_by_side.metric, side_by_side.difference]
    limit: 200
    listen:
      Experiment: side_by_side.experiment
      Run: run_choices.run
      Query: side_by_side.query_id
      Days back: horizon.days
    row: 8
    col: 12
    width: 12
    height: 8
  - name: documents
    title: What was found for it
    note_text: Rankings that the run kept; a grade is empty where the document is not judged.
    model: rankbeam
    explore: queries
    type: looker_grid
    fields: [ranked_documents.rank, configurations.configuration, ranked_documents.doc_id, ranked_documents.grade,
      ranked_documents.score, ranked_documents.text]
    sorts: [configurations.configuration, ranked_documents.rank]
    limit: 500
    listen:
      Experiment: queries.experiment
      Run: run_choices.run
      Query: queries.query_id
      Days back: horizon.days
    row: 16
    col: 0
    width: 24
    height: 10
  - name: changes
    title: Over time
    model: rankbeam
    explore: query_changes
    type: looker_grid
    fields: [query_changes.started_time, query_changes.configuration, query_changes.metric,
      query_changes.previous_value, query_changes.value, query_changes.difference, query_changes.status]
    sorts: [query_changes.started_time desc, query_changes.configuration, query_changes.metric]
    limit: 200
    listen:
      Experiment: query_changes.experiment
      Started: query_changes.started_date
      Query: query_changes.query_id
      Days back: horizon.days
    row: 26
    col: 0
    width: 14
    height: 8
  - name: failures
    title: What failed
    model: rankbeam
    explore: queries
    type: looker_grid
    fields: [configurations.configuration, failed_calls.caller, failed_calls.stage, failed_calls.kind,
      failed_calls.attempts, failed_calls.message]
    filters:
      queries.status: failed
    sorts: [configurations.configuration]
    limit: 100
    listen:
      Experiment: queries.experiment
      Run: run_choices.run
      Query: queries.query_id
      Days back: horizon.days
    row: 26
    col: 14
    width: 10
    height: 8
