"""Execute a notebook with the kernel beside this Python, in the notebook's folder, and print its cells as JSON.

python execute.py NOTEBOOK.ipynb

The kernel refuses every connection beyond this machine, which is as if there were no network.
"""

import json
import sys
from pathlib import Path

import nbclient
import nbformat

OFFLINE = """
import socket
_connect = socket.socket.connect
def _on_this_machine(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "localhost", "::1"):
        raise OSError(f"no network: {address}")
    return _connect(self, address)
socket.socket.connect = _on_this_machine
"""

path = Path(sys.argv[1]).resolve()
notebook = nbformat.read(path, as_version=4)
nbformat.validate(notebook)
notebook.cells.insert(0, nbformat.v4.new_code_cell(OFFLINE))
nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
json.dump(notebook.cells[1:], sys.stdout)
