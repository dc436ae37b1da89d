#!/usr/bin/env python3
"""The example notebook runs from its first cell to its last, and what it shows is there."""
import os
import unittest

import places


class Notebook(unittest.TestCase):
    def test_it_runs(self):
        try:
            import nbclient
            import nbformat
            import ipykernel  # noqa: F401
        except ImportError as failure:
            self.skipTest(f"{failure}; install python3-nbclient and python3-ipykernel")
        folder = places.SOURCE / "bindings" / "python" / "examples"
        notebook = nbformat.read(folder / "attention.ipynb", as_version=4)
        environment = {"VKFORMER_MODELS": str(places.MODELS)}
        if "VKFORMER_TEST_INSTALLED" not in os.environ:
            environment["PYTHONPATH"] = str(folder.parent)
        kept = dict(os.environ)
        os.environ.update(environment)
        try:
            nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
        finally:
            os.environ.clear()
            os.environ.update(kept)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        shown = [output for cell in cells for output in cell.outputs]
        kinds = {kind for output in shown for kind in output.get("data", {})}
        self.assertLessEqual({"image/png", "text/html", "text/plain"}, kinds)
        self.assertFalse([output for output in shown if output.output_type == "error"])
        self.assertIn("AH0 T EH1 N SH AH0 N", str(cells[1].outputs))


if __name__ == "__main__":
    unittest.main()
