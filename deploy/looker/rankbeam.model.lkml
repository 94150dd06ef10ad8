connection: "@{connection}"
label: "rankbeam"

include: "/columns.view.lkml"
include: "/views/*.view.lkml"
include: "/dashboards/*.dashboard.lookml"

# Every explore shows finished runs only. Those of single runs show the latest one of each experiment by default: the
# filter run_choices.run says which others, such as "last good" after an outage.

explore: runs {
  label: "Runs"
  description: "When what ran, how long it took, what it called"
}

explore: leaderboard {
  label: "Leaderboard"
  description: "Configurations by metric, with intervals"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${leaderboard.run_id} ;;
  }
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${leaderboard.run_id} ;;
  }
}

explore: slice_leaderboard {
  label: "Slices"
  description: "Configurations by metric, for groups of queries"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${slice_leaderboard.run_id} ;;
  }
}

explore: differences {
  label: "Differences from the baseline"
  description: "Paired comparisons: intervals, p-values, wins and losses"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", differences.slice: "all"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${differences.run_id} ;;
  }
}

explore: side_by_side {
  label: "Two configurations, query by query"
  description: "For which queries a configuration differs from its baseline"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${side_by_side.run_id} ;;
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
  always_filter: { filters: [run_choices.run: "latest"] }
  always_join: [runs, configurations] # which have finished runs only
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${queries.run_id} ;;
  }
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
    sql_on: ${failed_calls.run_id} = ${queries.run_id} AND ${failed_calls.config_id} = ${queries.config_id}
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
  description: "Which configurations got worse since their previous run with values, over the same dataset"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${regressions.run_id} ;;
  }
}

explore: trend {
  label: "Trend"
  description: "Configurations over time"
}

explore: monitoring {
  label: "Changes since the baseline"
  description: "Whether a metric has fallen since a pinned baseline run, night after night"
}

explore: coverage {
  label: "Coverage"
  description: "Queries without an answer, and why"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${coverage.run_id} ;;
  }
}

explore: failure_kinds {
  label: "Failures"
  description: "What failed, at which stage, and what the service said"
}

explore: answers_of_configuration {
  label: "Answers"
  description: "What every configuration answered, from which contexts"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${answers_of_configuration.run_id} ;;
  }
  join: contexts_of_answer {
    view_label: "Contexts"
    type: left_outer
    relationship: one_to_many
    sql_on: ${contexts_of_answer.run_id} = ${answers_of_configuration.run_id}
      AND ${contexts_of_answer.config_id} = ${answers_of_configuration.config_id}
      AND ${contexts_of_answer.query_id} = ${answers_of_configuration.query_id}
      AND ${contexts_of_answer.sample} = ${answers_of_configuration.sample} ;;
  }
}

explore: verdicts_of_configuration {
  label: "Verdicts"
  description: "Which claims are supported by which texts, grades of contexts, kinds of answers"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest", verdicts_of_configuration.is_repeat: "no"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${verdicts_of_configuration.run_id} ;;
  }
}

explore: judge_quality {
  label: "Quality of the judge"
  description: "Agreement between repeats, accuracy over known items, tokens and cost"
  sql_always_where: ${run_choices.is_chosen} ;;
  always_filter: { filters: [run_choices.run: "latest"] }
  join: run_choices {
    view_label: "Which run"
    type: inner
    relationship: many_to_one
    sql_on: ${run_choices.run_id} = ${judge_quality.run_id} ;;
  }
  join: runs {
    type: inner
    relationship: many_to_one
    sql_on: ${runs.run_id} = ${judge_quality.run_id} ;;
  }
}

explore: cost {
  label: "Cost"
  description: "Calls by the hour, and what the ledger saved"
}
