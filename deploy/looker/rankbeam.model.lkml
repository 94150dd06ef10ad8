connection: "@{connection}"
label: "rankbeam"

include: "/columns.view.lkml"
include: "/views/*.view.lkml"
include: "/dashboards/*.dashboard.lookml"

# Every explore shows finished runs only. Those of single runs show the latest one of each experiment by default: the
# filter run_choices.run says which others, such as "last good" after an outage. All but runs and cost read only what the
# last horizon.days days hold: every table has that constant bound, so BigQuery reads only these partitions.

explore: runs {
  label: "Runs"
  description: "When what ran, how long it took, what it called"
}

explore: freshness {
  label: "Is there a run?"
  description: "When the chosen run began, or that it is older than what explores read"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${freshness.run_id} AND ${run_choices.started_raw} = ${freshness.started_raw} ;;
  }
}

explore: leaderboard {
  label: "Leaderboard"
  description: "Configurations by metric, with intervals"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${leaderboard.run_id} AND ${run_choices.started_raw} = ${leaderboard.started_raw} ;;
  }
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${leaderboard.run_id} AND ${runs.started_raw} = ${leaderboard.started_raw} ;;
  }
}

explore: slice_leaderboard {
  label: "Slices"
  description: "Configurations by metric, for groups of queries"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${slice_leaderboard.run_id}
      AND ${run_choices.started_raw} = ${slice_leaderboard.started_raw} ;;
  }
}

explore: differences {
  label: "Differences from the baseline"
  description: "Paired comparisons: intervals, p-values, wins and losses"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90", differences.slice: "all"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${differences.run_id} AND ${run_choices.started_raw} = ${differences.started_raw} ;;
  }
}

explore: side_by_side {
  label: "Two configurations, query by query"
  description: "For which queries a configuration differs from its baseline"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${side_by_side.run_id}
      AND ${run_choices.started_raw} = ${side_by_side.started_raw} ;;
  }
  join: side_by_side_slices {
    view_label: "Slices of the query"
    relationship: one_to_many
    sql: LEFT JOIN UNNEST(${side_by_side.slices}) AS side_by_side_slices ;;
  }
}

explore: queries {
  label: "Queries"
  description: "What happened to a query: its values, its documents, its failures"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  always_join: [runs, configurations] # which have finished runs only
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${queries.run_id} AND ${run_choices.started_raw} = ${queries.started_raw} ;;
  }
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${queries.run_id} AND ${runs.started_raw} = ${queries.started_raw} ;;
  }
  join: configurations {
    type: inner
    relationship: many_to_one
    sql_on: ${configurations.run_id} = ${queries.run_id}
      AND ${configurations.started_raw} = ${queries.started_raw}
      AND ${configurations.config_id} = ${queries.config_id} ;;
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
    sql_on: ${rankings.run_id} = ${queries.run_id}
      AND ${rankings.started_raw} = ${queries.started_raw}
      AND ${rankings.config_id} = ${queries.config_id}
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
    sql_on: ${failed_calls.run_id} = ${queries.run_id}
      AND ${failed_calls.started_raw} = ${queries.started_raw}
      AND ${failed_calls.config_id} = ${queries.config_id}
      AND ${failed_calls.query_id} = ${queries.query_id} ;;
  }
}

explore: query_changes {
  label: "Queries since the previous run"
  description: "Which queries got better or worse under a configuration"
  always_filter: { filters: [horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: query_changes_slices {
    view_label: "Slices of the query"
    relationship: one_to_many
    sql: LEFT JOIN UNNEST(${query_changes.slices}) AS query_changes_slices ;;
  }
}

explore: regressions {
  label: "Regressions"
  description: "Which configurations got worse since their previous run with values, over the same dataset"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${regressions.run_id} AND ${run_choices.started_raw} = ${regressions.started_raw} ;;
  }
}

explore: trend {
  label: "Trend"
  description: "Configurations over time"
  always_filter: { filters: [horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
}

explore: monitoring {
  label: "Changes since the baseline"
  description: "Whether a metric has fallen since a pinned baseline run, night after night"
  always_filter: { filters: [horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
}

explore: coverage {
  label: "Coverage"
  description: "Queries without an answer, and why"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${coverage.run_id} AND ${run_choices.started_raw} = ${coverage.started_raw} ;;
  }
}

explore: failure_kinds {
  label: "Failures"
  description: "What failed, at which stage, and what the service said"
  always_filter: { filters: [horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
}

explore: answers_of_configuration {
  label: "Answers"
  description: "What every configuration answered, from which contexts"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${answers_of_configuration.run_id}
      AND ${run_choices.started_raw} = ${answers_of_configuration.started_raw} ;;
  }
  join: contexts_of_answer {
    view_label: "Contexts"
    type: left_outer
    relationship: one_to_many
    sql_on: ${contexts_of_answer.run_id} = ${answers_of_configuration.run_id}
      AND ${contexts_of_answer.started_raw} = ${answers_of_configuration.started_raw}
      AND ${contexts_of_answer.config_id} = ${answers_of_configuration.config_id}
      AND ${contexts_of_answer.query_id} = ${answers_of_configuration.query_id}
      AND ${contexts_of_answer.sample} = ${answers_of_configuration.sample} ;;
  }
}

explore: verdicts_of_configuration {
  label: "Verdicts"
  description: "Which claims are supported by which texts, grades of contexts, kinds of answers"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90", verdicts_of_configuration.is_repeat: "no"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${verdicts_of_configuration.run_id}
      AND ${run_choices.started_raw} = ${verdicts_of_configuration.started_raw} ;;
  }
}

explore: judge_quality {
  label: "Quality of the judge"
  description: "Agreement between repeats, accuracy over known items, tokens and cost"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", horizon.days: "90"] }
  join: horizon {
    view_label: "Which run"
    relationship: one_to_one
    sql: /* no table, only the filter */ ;;
  }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${judge_quality.run_id}
      AND ${run_choices.started_raw} = ${judge_quality.started_raw} ;;
  }
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${judge_quality.run_id} AND ${runs.started_raw} = ${judge_quality.started_raw} ;;
  }
}

explore: cost {
  label: "Cost"
  description: "Calls by the hour, and what the ledger saved"
}
