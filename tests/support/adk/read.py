"""Read an EvalSet with google-adk's own models and its own loader, and print what they read; run by .venv-adk."""

import json
import sys
from pathlib import Path

from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

path = sys.argv[1]
read = EvalSet.model_validate_json(Path(path).read_text(encoding="utf-8"))
if read != load_eval_set_from_file(path, read.eval_set_id):
    raise SystemExit("the loader reads something else than the models")
cases = {}
for case in read.eval_cases:
    (invocation,) = case.conversation
    cases[case.eval_id] = [invocation.user_content.parts[0].text, invocation.final_response.parts[0].text]
sys.stdout.write(json.dumps(cases))
