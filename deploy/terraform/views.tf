# The views of ../bigquery, as `rankbeam warehouse apply` creates them. BigQuery requires project and dataset before every
# table of a view; the files have bare names.
locals {
  # A view reads only tables, and views of lower levels, which must exist when it is created.
  view_levels = [
    ["run_history"],
    ["answers_of_configuration", "configuration_costs", "configuration_history", "contexts_of_answer", "cost", "differences", "leaderboard", "monitoring", "per_query", "run_choices", "slice_leaderboard", "trend", "unanswered", "verdicts_of_configuration"],
    ["failure_kinds", "latest_answers_of_configuration", "latest_differences", "latest_leaderboard", "latest_per_query", "latest_slice_leaderboard", "latest_verdicts_of_configuration", "query_changes", "side_by_side", "stages", "trade_off"],
    ["coverage", "latest_side_by_side", "regressions"],
  ]

  view_files = { for name in flatten(local.view_levels) : name => file("${path.module}/../bigquery/${name}.sql") }

  # Only names of rankbeam's tables and views are qualified, not those of common table expressions.
  names_of_ours = join("|", concat(keys(local.schemas), keys(local.view_files)))

  view_queries = {
    for team, settings in local.teams : team => {
      for name, text in local.view_files : name => replace(
        text, "/\\b(FROM|JOIN) (${local.names_of_ours})\\b/", "$1 `${var.project}`.`${settings.dataset}`.$2"
      )
    }
  }

  # The question that a view answers: the comment at the head of its file.
  view_descriptions = {
    for name, text in local.view_files : name => trimspace(replace(regex("^(?:--[^\n]*\n)+", text), "/(^|\n)-- */", " "))
  }
}

resource "google_bigquery_table" "views_on_tables" {
  for_each = local.team_views[0]

  dataset_id          = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  table_id            = each.value.name
  description         = local.view_descriptions[each.value.name]
  deletion_protection = false # a view holds nothing

  view {
    query          = local.view_queries[each.value.team][each.value.name]
    use_legacy_sql = false
  }

  depends_on = [google_bigquery_table.tables]
}

resource "google_bigquery_table" "views_on_views" {
  for_each = local.team_views[1]

  dataset_id          = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  table_id            = each.value.name
  description         = local.view_descriptions[each.value.name]
  deletion_protection = false # a view holds nothing

  view {
    query          = local.view_queries[each.value.team][each.value.name]
    use_legacy_sql = false
  }

  depends_on = [google_bigquery_table.views_on_tables]
}

resource "google_bigquery_table" "views_on_views_2" {
  for_each = local.team_views[2]

  dataset_id          = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  table_id            = each.value.name
  description         = local.view_descriptions[each.value.name]
  deletion_protection = false # a view holds nothing

  view {
    query          = local.view_queries[each.value.team][each.value.name]
    use_legacy_sql = false
  }

  depends_on = [google_bigquery_table.views_on_views]
}

resource "google_bigquery_table" "views_on_views_3" {
  for_each = local.team_views[3]

  dataset_id          = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  table_id            = each.value.name
  description         = local.view_descriptions[each.value.name]
  deletion_protection = false # a view holds nothing

  view {
    query          = local.view_queries[each.value.team][each.value.name]
    use_legacy_sql = false
  }

  depends_on = [google_bigquery_table.views_on_views_2]
}
