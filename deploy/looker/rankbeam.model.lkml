connection: "@{connection}"
label: "rankbeam"

include: "/views/*.view.lkml"
include: "/dashboards/*.dashboard.lookml"

# Every explore shows finished runs only, and by default the latest one of each experiment.

explore: runs {
  label: "Runs"
  description: "When what ran, how long it took, what it called"
}

explore: leaderboard {
  label: "Leaderboard"
  description: "Configurations by metric, with intervals"
  always_filter: { filters: [leaderboard.is_latest: "yes"] }
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${leaderboard.run_id} ;;
  }
}

explore: slice_leaderboard {
  label: "Slices"
  description: "Configurations by metric, for groups of queries"
  always_filter: { filters: [slice_leaderboard.is_latest: "yes"] }
}

explore: differences {
  label: "Differences from the baseline"
  description: "Paired comparisons: intervals, p-values, wins and losses"
  always_filter: { filters: [differences.is_latest: "yes", differences.slice: "all"] }
}

explore: side_by_side {
  label: "Two configurations, query by query"
  description: "For which queries a configuration differs from its baseline"
  always_filter: { filters: [side_by_side.is_latest: "yes"] }
  join: side_by_side_slices {
    view_label: "Slices of the query"
    relationship: one_to_many
    sql: LEFT JOIN UNNEST(${side_by_side.slices}) AS side_by_side_slices ;;
  }
}

explore: queries {
  label: "Queries"
  description: "What happened to a query: its values, its documents, its failures"
  always_filter: { filters: [runs.is_latest: "yes"] }
  always_join: [runs, configurations] # which have finished runs only
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${queries.run_id} ;;
  }
  join: configurations {
    type: inner
    relationship: many_to_one
    sql_on: ${configurations.run_id} = ${queries.run_id} AND ${configurations.config_id} = ${queries.config_id} ;;
  }
  join: query_values {
    view_label: "Values"
    relationship: one_to_many
    sql: LEFT JOIN UNNEST(${queries.metrics}) AS query_values ;;
  }
  join: query_slices {
    view_label: "Slices of the query"
    relationship: one_to_many
    sql: LEFT JOIN UNNEST(${queries.slices}) AS query_slices ;;
  }
  join: rankings {
    type: left_outer
    relationship: one_to_one
    sql_on: ${rankings.run_id} = ${queries.run_id} AND ${rankings.config_id} = ${queries.config_id}
      AND ${rankings.query_id} = ${queries.query_id} ;;
  }
  join: ranked_documents {
    view_label: "Documents"
    relationship: one_to_many
    required_joins: [rankings]
    sql: LEFT JOIN UNNEST(${rankings.documents}) AS ranked_documents ;;
  }
  join: failed_calls {
    view_label: "Failures"
    type: left_outer
    relationship: one_to_many
    required_joins: [configurations]
    sql_on: ${failed_calls.run_id} = ${queries.run_id} AND ${failed_calls.config_id} = ${configurations.caller_id}
      AND ${failed_calls.query_id} = ${queries.query_id} ;;
  }
}

explore: query_changes {
  label: "Queries since the previous run"
  description: "Which queries got better or worse under a configuration"
  join: query_changes_slices {
    view_label: "Slices of the query"
    relationship: one_to_many
    sql: LEFT JOIN UNNEST(${query_changes.slices}) AS query_changes_slices ;;
  }
}

explore: regressions {
  label: "Regressions"
  description: "Which configurations got worse since their previous run over the same dataset"
  always_filter: { filters: [regressions.is_latest: "yes"] }
}

explore: trend {
  label: "Trend"
  description: "Configurations over time"
}

explore: coverage {
  label: "Coverage"
  description: "Queries without an answer, and why"
  always_filter: { filters: [coverage.is_latest: "yes"] }
}

explore: failure_kinds {
  label: "Failures"
  description: "What failed, at which stage, and what the service said"
}

explore: cost {
  label: "Cost"
  description: "Calls by the hour, and what the ledger saved"
}
