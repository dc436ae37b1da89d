#!/usr/bin/env python3
"""`vkformer pull` against a server on loopback that behaves as the Hugging Face hub does, faults
included. Commands also find models in the cache by their names.

    pull_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""
import hashlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from urllib.parse import unquote, urlsplit

import cli_support
from cli_support import run

SOURCE = ""  # set below
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "some-org/tiny.model"
FOLDER = "models--some-org--tiny.model"


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class File:
    """A file of the hub's model, and what goes wrong with it."""

    def __init__(self, data, large=False):
        self.data = data
        self.large = large
        self.hash = hashlib.sha256(data).hexdigest() if large else git_hash(data)
        self.size = len(data)
        self.cuts = []          # the next bodies end after these numbers of bytes, with the connection
        self.sent = None        # other bytes than the hub says
        self.ranges = True
        self.no_length = False
        self.statuses = []      # (status, headers) of the next requests
        self.redirect = None    # where large files are stored
        self.seconds = 0        # that a body takes


class Hub(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files, commit=COMMIT):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.commit = commit
        self.revisions = {"main": commit, commit: commit}
        self.names = None        # names of the listing; else those of the files
        self.listing = None      # bytes in place of the listing
        self.statuses = []       # (status, headers) of the next listings
        self.token = None        # that must be sent
        self.moved = False       # small files are redirected inside the hub
        self.seen = []           # (method, path, headers)
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, host="127.0.0.1"):
        return f"http://{host}:{self.server_address[1]}"

    def requests(self, method, file):
        return [headers for verb, path, headers in self.seen
                if verb == method and path == f"/{NAME}/resolve/{self.commit}/{file}"]

    def handle_error(self, *_):
        pass  # a client that went away

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if "Content-Length" not in dict(headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.serve()

    def do_GET(self):
        self.serve()

    def serve(self):
        hub, path = self.server, unquote(urlsplit(self.path).path)
        with hub.lock:
            hub.seen.append((self.command, path, dict(self.headers)))
        if hub.token and self.headers.get("Authorization") != "Bearer " + hub.token:
            self.answer(401, {"X-Error-Code": "RepoNotFound"})
            return
        if path.startswith("/api/models/"):
            self.list(path)
            return
        if path.startswith("/stored/"):
            self.send_body(hub.files[path[len("/stored/"):]], {})
            return
        for begin in ("/" + NAME + "/resolve/", "/api/resolve-cache/" + NAME + "/"):
            if path.startswith(begin):
                revision, _, name = path[len(begin):].partition("/")
                self.resolve(revision, name, begin)
                return
        self.answer(404, {"X-Error-Code": "RepoNotFound"})

    def list(self, path):
        hub = self.server
        if hub.statuses:
            self.answer(*hub.statuses.pop(0))
            return
        begin = "/api/models/" + NAME + "/revision/"
        if not path.startswith(begin):
            self.answer(404, {"X-Error-Code": "RepoNotFound"})
            return
        commit = hub.revisions.get(path[len(begin):])
        if commit is None:
            self.answer(404, {"X-Error-Code": "RevisionNotFound"})
            return
        names = hub.names if hub.names is not None else list(hub.files)
        body = json.dumps({"id": NAME, "sha": commit,
                           "siblings": [{"rfilename": name} for name in names]}).encode()
        self.answer(200, {"Content-Type": "application/json"},
                    body if hub.listing is None else hub.listing)

    def resolve(self, revision, name, begin):
        hub = self.server
        file = hub.files.get(name)
        commit = hub.revisions.get(revision)
        if file is None or commit is None:
            self.answer(404, {"X-Error-Code": "EntryNotFound"})
            return
        if file.statuses:
            self.answer(*file.statuses.pop(0))
            return
        facts = {"X-Repo-Commit": commit, "ETag": f'"{file.hash}"', "Accept-Ranges": "bytes"}
        if hub.moved and not file.large and "resolve-cache" not in begin:
            self.answer(307, {"X-Repo-Commit": commit,
                              "Location": f"/api/resolve-cache/{NAME}/{revision}/{name}"})
            return
        if file.large:
            facts.update({"X-Linked-Etag": f'"{file.hash}"', "X-Linked-Size": str(file.size)})
            if file.redirect:
                self.answer(302, {**facts, "ETag": '"other"', "Location": file.redirect})
                return
        self.send_body(file, facts)

    def send_body(self, file, facts):
        data = file.data if file.sent is None else file.sent
        if self.command == "HEAD":
            self.answer(200, {**facts, "Content-Length": str(file.size)})
            return
        status, first = 200, 0
        wanted = self.headers.get("Range")
        if wanted and file.ranges:
            first = int(wanted[len("bytes="):].rstrip("-"))
            if first >= len(data):
                self.answer(416)
                return
            status = 206
            facts["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        body = data[first:]
        self.send_response(status)
        for name, value in facts.items():
            self.send_header(name, value)
        if file.no_length:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = file.cuts.pop(0) if file.cuts else None
        if file.seconds:
            time.sleep(file.seconds)
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)


def model_files():
    """A model that `inspect` and `tokenize` read, with what else models have on the hub."""
    folder = os.path.join(SOURCE, "models/g2p-en")
    files = {}
    for name in ("config.json", "tokenizer.json", "generation_config.json", "model.safetensors"):
        with open(os.path.join(folder, name), "rb") as file:
            files[name] = File(file.read(), large=name.endswith(".safetensors"))
    files["chat_template.jinja"] = File(b"{{ messages }}")
    files["1_Pooling/config.json"] = File(b'{"pooling_mode_mean_tokens": true}')
    files["added_tokens.json"] = File(b"")
    for name in ("pytorch_model.bin", "flax_model.msgpack", "tf_model.h5", "onnx/model.onnx",
                 "README.md", ".gitattributes", "consolidated.safetensors", "runs/log.json"):
        files[name] = File(b"not read", large=True)
    return files


USED = {"config.json", "tokenizer.json", "generation_config.json", "model.safetensors",
        "chat_template.jinja", "1_Pooling/config.json", "added_tokens.json"}


class PullTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = os.path.join(folder.name, "cache", "hub")
        self.home = folder.name
        self.hub = self.start(model_files())

    def start(self, files, **more):
        hub = Hub(files, **more)
        self.addCleanup(hub.close)
        return hub

    def environment(self, **more):
        return {"HF_HUB_CACHE": self.cache, "HF_HOME": self.home, "HF_ENDPOINT": self.hub.url(),
                "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "",
                "no_proxy": "*", **more}

    def pull(self, *arguments, name=NAME, **more):
        return run("pull", name, *arguments, environment=self.environment(**more))

    def good(self, *arguments, **more):
        result = self.pull(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, code, *arguments, **more):
        """The one sentence that a failure is."""
        result = self.pull(*arguments, "--quiet", **more)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], r"^vkformer: \[.+[.?]$")
        return lines[0]

    def path(self, *names):
        return os.path.join(self.cache, FOLDER, *names)

    def snapshot(self, *names):
        return self.path("snapshots", COMMIT, *names)

    def part(self, name):
        return self.path("blobs", self.hub.files[name].hash + ".incomplete")

    def check_model(self):
        """The files are what huggingface_hub makes of them."""
        for name in USED:
            file = self.hub.files[name]
            link = self.snapshot(name)
            target = "../../" + "../" * name.count("/") + "blobs/" + file.hash
            self.assertEqual(os.readlink(link), target)
            with open(link, "rb") as opened:
                self.assertEqual(opened.read(), file.data)
        found = {os.path.relpath(os.path.join(folder, name), self.snapshot())
                 for folder, _, names in os.walk(self.snapshot()) for name in names}
        self.assertEqual(found, USED)
        self.assertEqual(set(os.listdir(self.path("blobs"))),
                         {self.hub.files[name].hash for name in USED})

    def check_nothing_kept(self, name):
        self.assertFalse(os.path.exists(self.part(name)))
        self.assertFalse(os.path.exists(self.path("blobs", self.hub.files[name].hash)))
        self.assertFalse(os.path.exists(self.snapshot(name)))
        self.assertFalse(os.path.exists(self.path("refs/main")))


class LayoutTest(PullTest):
    def test_whole_model(self):
        result = self.good()
        self.assertEqual(result.stdout, self.snapshot() + "\n")
        self.check_model()
        with open(self.path("refs/main"), encoding="utf-8") as file:
            self.assertEqual(file.read(), COMMIT)
        locks = os.path.join(self.cache, ".locks", FOLDER)
        self.assertEqual(set(os.listdir(locks)),
                         {self.hub.files[name].hash + ".lock" for name in USED})
        self.assertTrue(os.path.exists(os.path.join(self.cache, "CACHEDIR.TAG")))
        self.assertIn("model.safetensors", result.stderr)
        # Again: nothing is downloaded.
        before = len([1 for method, _, _ in self.hub.seen if method == "GET"])
        facts = json.loads(self.good("--json", "--quiet").stdout)
        self.assertEqual((facts["model"], facts["commit"], facts["path"]),
                         (NAME, COMMIT, self.snapshot()))
        self.assertEqual({file["name"]: file["bytes"] for file in facts["files"]},
                         {name: self.hub.files[name].size for name in USED})
        self.assertFalse(any(file["downloaded"] for file in facts["files"]))
        gets = [path for method, path, _ in self.hub.seen if method == "GET"][before:]
        self.assertEqual(gets, [f"/api/models/{NAME}/revision/main"])

    def test_quiet(self):
        self.assertEqual(self.good("--quiet").stderr, "")

    def test_caches(self):
        for variables, folder in (({"HF_HUB_CACHE": "", "HF_HOME": os.path.join(self.home, "h")}, "h/hub"),
                                  ({"HF_HUB_CACHE": "", "HF_HOME": "", "XDG_CACHE_HOME": "",
                                    "HOME": self.home}, ".cache/huggingface/hub")):
            with self.subTest(folder=folder):
                out = self.good(**variables).stdout
                self.assertEqual(out.strip(),
                                 os.path.join(self.home, folder, FOLDER, "snapshots", COMMIT))

    def test_revisions(self):
        other = "f" * 40
        self.hub.revisions.update({"refs/pr/1": other, other: other, "v1.0": COMMIT})
        self.good("--revision", "v1.0")
        self.good("--revision", "refs/pr/1")
        self.good("--revision", COMMIT)
        with open(self.path("refs/refs/pr/1"), encoding="utf-8") as file:
            self.assertEqual(file.read(), other)
        self.assertEqual(set(os.listdir(self.path("refs"))), {"v1.0", "refs"})
        self.assertIn("no such revision", self.refused(1, "--revision", "v2"))
        self.assertEqual(self.pull("--revision", "../x").returncode, 2)

    def test_one_file(self):
        parts = {f"q4-0000{part}-of-00002.gguf": File(b"GGUF" * part, large=True) for part in (1, 2)}
        self.hub.files = {**parts, "deep/q8.gguf": File(b"GGUF", large=True), "README.md": File(b"")}
        first = "q4-00001-of-00002.gguf"
        self.assertEqual(self.good(name=f"{NAME}:{first}").stdout, self.snapshot(first) + "\n")
        self.assertEqual(set(os.listdir(self.snapshot())), set(parts))
        self.assertEqual(self.good(name=NAME + ":deep/q8.gguf").stdout,
                         self.snapshot("deep/q8.gguf") + "\n")
        text = self.refused(1, name=NAME + ":deep/q9.gguf")
        self.assertIn(f"did you mean {NAME}:deep/q8.gguf?", text)
        self.assertIn("reads no such file", self.refused(3, name=NAME + ":README.md"))
        # Two models, one of them in parts.
        text = self.refused(1)
        self.assertIn("has 2 GGUF files; give one of them", text)
        self.assertIn(f"{NAME}:{first}", text)
        self.hub.files = parts
        self.assertEqual(self.good().stdout, self.snapshot(first) + "\n")

    def test_no_weights(self):
        self.hub.files = {"config.json": File(b"{}"), "pytorch_model.bin": File(b"x", large=True)}
        self.assertIn("it has pytorch_model.bin", self.refused(3))

    def test_shards(self):
        names = ["model.safetensors.index.json", "model-00001-of-00002.safetensors",
                 "model-00002-of-00002.safetensors", "consolidated.00.safetensors"]
        self.hub.files = {name: File(name.encode(), large=True) for name in names}
        self.good()
        self.assertEqual(set(os.listdir(self.snapshot())), set(names[:3]))

    def test_names(self):
        for name in ("gpt2", "a/b/c", "../b", "a/..", "a/b--c", "-a/b", "a b/c", "a/b:", "a/b:../c"):
            with self.subTest(name=name):
                result = self.pull(name=name)
                self.assertEqual(result.returncode, 2, result.stderr)


class FaultTest(PullTest):
    def test_cut_connection(self):
        weights = self.hub.files["model.safetensors"]
        third = weights.size // 3
        weights.cuts = [third, third]
        self.good()
        self.check_model()
        asked = [headers.get("Range") for headers in self.hub.requests("GET", "model.safetensors")]
        self.assertEqual(asked, [None, f"bytes={third}-", f"bytes={2 * third}-"])

    def test_cut_without_length(self):
        weights = self.hub.files["model.safetensors"]
        weights.no_length = True
        weights.cuts = [1000]
        self.good()
        self.check_model()

    def test_cut_for_good(self):
        weights = self.hub.files["model.safetensors"]
        weights.cuts = [1000] + [0] * 20
        text = self.refused(1)
        self.assertIn("5 times without progress", text)
        self.assertEqual(os.path.getsize(self.part("model.safetensors")), 1000)
        self.assertFalse(os.path.exists(self.path("refs/main")))
        # The next one goes on.
        weights.cuts = []
        self.good()
        self.check_model()
        self.assertEqual(self.hub.requests("GET", "model.safetensors")[-1]["Range"], "bytes=1000-")

    def test_server_without_ranges(self):
        weights = self.hub.files["model.safetensors"]
        weights.cuts, weights.ranges = [1000], False
        self.good()
        self.check_model()

    def leave_part(self, data):
        os.makedirs(self.path("blobs"))
        with open(self.part("model.safetensors"), "wb") as file:
            file.write(data)

    def test_killed_download(self):
        weights = self.hub.files["model.safetensors"]
        for size in (1, weights.size - 1, weights.size):
            with self.subTest(size=size):
                self.leave_part(weights.data[:size])
                self.good()
                self.check_model()
                shutil.rmtree(self.cache)

    def test_part_of_other_content(self):
        weights = self.hub.files["model.safetensors"]
        for data in (b"x" * 1000, b"x" * weights.size, b"x" * (weights.size + 1)):
            with self.subTest(size=len(data)):
                self.leave_part(data)
                self.good()
                self.check_model()
                shutil.rmtree(self.cache)

    def test_wrong_size(self):
        weights = self.hub.files["model.safetensors"]
        for sent, said in ((weights.data[:-7], f"came with {weights.size - 7} bytes"),
                           (weights.data + b"x", f"came with more than {weights.size} bytes"),
                           (b"", "came with 0 bytes")):
            with self.subTest(said=said):
                weights.sent = sent
                text = self.refused(1)
                self.assertIn(said, text)
                self.assertIn(f"the hub says that it has {weights.size}", text)
                self.check_nothing_kept("model.safetensors")

    def test_wrong_hash(self):
        for name, kind in (("model.safetensors", "SHA-256"), ("config.json", "git hash")):
            with self.subTest(name=name):
                file = self.hub.files[name]
                file.sent = bytes([file.data[0] ^ 1]) + file.data[1:]
                text = self.refused(1)
                self.assertIn(f"{name} came with the {kind}", text)
                self.assertIn(file.hash, text)
                self.check_nothing_kept(name)
                file.sent = None
                shutil.rmtree(self.cache)

    def test_damaged_blob(self):
        """A blob of another size than the hub says is downloaded anew."""
        self.good()
        blob = self.path("blobs", self.hub.files["model.safetensors"].hash)
        with open(blob, "ab") as file:
            file.truncate(100)
        self.good()
        self.check_model()
        os.remove(blob)
        self.good()
        self.check_model()

    def test_unknown_hash(self):
        self.hub.files["config.json"].hash = "v7-some.etag"
        self.assertIn("only its size was checked", self.good().stderr)

    def test_unauthorized(self):
        self.hub.token = "hf_right"
        text = self.refused(1)
        self.assertIn("answered 401", text)
        self.assertIn("set HF_TOKEN", text)
        self.assertIn("Check the name and HF_TOKEN", self.refused(1, HF_TOKEN="hf_wrong"))
        self.assertNotIn("hf_wrong", self.refused(1, HF_TOKEN="hf_wrong"))
        self.good(HF_TOKEN=" hf_right\n")
        self.check_model()

    def test_stored_token(self):
        self.hub.token = "hf_stored"
        with open(os.path.join(self.home, "token"), "w", encoding="utf-8") as file:
            file.write("hf_stored\n")
        self.good()

    def test_gated(self):
        self.hub.files["config.json"].statuses = [(403, {"X-Error-Code": "GatedRepo"})]
        text = self.refused(1)
        self.assertIn("it is gated", text)
        self.assertIn(self.hub.url() + "/" + NAME, text)

    def test_not_found(self):
        self.assertIn("there is no such model", self.refused(1, name="other/model"))
        self.hub.files["config.json"].statuses = [(404, {"X-Error-Code": "EntryNotFound"})]
        self.assertIn("there is no such file", self.refused(1))

    def test_too_many_requests(self):
        wait = (429, {"Retry-After": "1"})
        self.hub.statuses = [wait]
        self.hub.files["config.json"].statuses = [wait, (503, {})]
        begin = time.monotonic()
        self.good()
        self.assertGreaterEqual(time.monotonic() - begin, 2)
        self.check_model()

    def test_far_too_many_requests(self):
        self.hub.statuses = [(429, {"Retry-After": "4000"})]
        text = self.refused(1)
        self.assertIn("answered 429 (too many requests) and asks to wait 4000 seconds", text)
        self.hub.statuses = [(429, {"Retry-After": "0"})] * 20
        self.assertIn("5 times in a row", self.refused(1))

    def test_server_error(self):
        self.hub.statuses = [(501, {})]
        self.assertIn("the hub answered 501", self.refused(1))

    def test_redirects(self):
        store = self.start(self.hub.files)
        self.hub.moved = True
        self.hub.token = "hf_secret"
        weights = self.hub.files["model.safetensors"]
        for host in ("127.0.0.1", "localhost"):  # another port, another host
            with self.subTest(host=host):
                weights.redirect = store.url(host) + "/stored/model.safetensors?signed=1"
                weights.cuts = [1000]
                self.good(HF_TOKEN="hf_secret")
                self.check_model()
                self.assertTrue(all("Authorization" in headers for _, _, headers in self.hub.seen))
                self.assertTrue(store.seen)
                for _, _, headers in store.seen:
                    self.assertNotIn("Authorization", headers)
                shutil.rmtree(self.cache)

    def test_hostile_redirects(self):
        weights = self.hub.files["model.safetensors"]
        for target in ("file:///etc/passwd", "gopher://127.0.0.1/x", "ftp://127.0.0.1/x"):
            with self.subTest(target=target):
                weights.redirect = target
                self.assertIn("which is refused", self.refused(1))
                self.check_nothing_kept("model.safetensors")
        config = self.hub.files["config.json"]
        config.statuses = [(302, {"Location": "/x"})]
        self.assertIn("answered 404", self.refused(1))
        config.statuses = [(302, {"Location": f"/{NAME}/resolve/{COMMIT}/config.json"})] * 40
        self.assertIn("redirected 10 times", self.refused(1))

    def test_hostile_names(self):
        for name in ("../evil.json", "/tmp/evil.json", "a/../../evil.json", "a\\..\\evil.json",
                     "C:evil.json", "./evil.json", "a//evil.json", "", "evil\n.json", "..",
                     "evil\0.json", "x" * 2000 + ".json"):
            with self.subTest(name=name[:40]):
                self.hub.names = ["config.json", name]
                self.assertIn("not inside the model's folder", self.refused(1))
                self.assertFalse(os.path.exists(self.path("snapshots")))

    def test_hostile_facts(self):
        for hash in ("../../evil", "..", "", "a/b", "x" * 200):
            with self.subTest(hash=hash[:40]):
                self.hub.files["config.json"].hash = hash
                self.assertIn("without a hash", self.refused(1))
        self.hub.files["config.json"].hash = git_hash(self.hub.files["config.json"].data)
        for commit in ("../../evil", "..", "", None, 7):
            with self.subTest(commit=commit):
                self.hub.revisions["main"] = commit
                if commit is None:
                    continue
                self.assertIn('has no commit ("sha")', self.refused(1))
        self.hub.revisions["main"] = COMMIT
        self.hub.revisions[COMMIT] = "f" * 40
        self.assertIn("in place of " + COMMIT, self.refused(1))
        self.hub.revisions[COMMIT] = COMMIT
        for size, said in ((-1, "Invalid Content-Length"), (1 << 59, "bytes more, but"),
                           (10 ** 30, "without a hash (ETag) or a size")):
            with self.subTest(size=size):
                self.hub.files["model.safetensors"].size = size
                self.assertIn(said, self.refused(1))

    def test_listings_that_are_none(self):
        for listing in (b"<html>welcome</html>", b"", b"[]", b"{}", b'{"siblings": 1, "sha": "a"}',
                        b'{"siblings": [1], "sha": "a"}', b'{"siblings": [{}], "sha": "a"}',
                        b"[" * 100000, b'{"siblings": [], "sha": 1}', b"\xff\xfe"):
            with self.subTest(listing=listing[:30]):
                self.hub.listing = listing
                self.assertIn("the list of files", self.refused(1))
        self.hub.listing = b'{"siblings": [], "sha": "a"}'
        self.assertIn("has no weights", self.refused(3))
        self.hub.listing = b" " * (65 << 20)
        self.assertIn("is larger than", self.refused(1))

    def test_two_at_once(self):
        self.hub.files["model.safetensors"].seconds = 2
        command = [cli_support.PROGRAM, "pull", NAME, "--quiet"]
        both = [subprocess.Popen(command, env={**os.environ, **self.environment()},
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        for process in both:
            out, text = process.communicate(timeout=120)
            self.assertEqual((process.returncode, text), (0, b""))
            self.assertEqual(out.decode(), self.snapshot() + "\n")
        self.check_model()
        for name in USED:
            self.assertLessEqual(len(self.hub.requests("GET", name)), 1, name)

    def test_ended_by_a_signal(self):
        weights = self.hub.files["model.safetensors"]
        weights.seconds = 30
        process = subprocess.Popen([cli_support.PROGRAM, "pull", NAME, "--quiet"],
                                   env={**os.environ, **self.environment()})
        while not self.hub.requests("GET", "model.safetensors"):
            time.sleep(0.05)
        process.kill()
        process.wait()
        self.assertFalse(os.path.exists(self.path("refs/main")))
        weights.seconds = 0
        self.good()
        self.check_model()

    def test_no_network(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        begin = time.monotonic()
        text = self.refused(1, HF_ENDPOINT=url)
        self.assertIn(url + " could not be reached", text)
        self.assertIn("Check the network", text)
        self.assertIn("no-such-host.invalid could not be reached",
                      self.refused(1, HF_ENDPOINT="https://no-such-host.invalid"))
        self.assertLess(time.monotonic() - begin, 120)
        for endpoint in ("huggingface", "file:///tmp", "ftp://127.0.0.1"):
            with self.subTest(endpoint=endpoint):
                self.assertIn("[HF_ENDPOINT]", self.refused(1, HF_ENDPOINT=endpoint))

    def test_folder_that_cannot_be_written(self):
        self.assertIn("/proc/none", self.refused(1, HF_HUB_CACHE="/proc/none"))

    def test_offline(self):
        offline = {"HF_HUB_OFFLINE": "1"}
        self.assertIn("HF_HUB_OFFLINE forbids", self.refused(1, **offline))
        self.assertEqual(self.hub.seen, [])
        self.good()
        before = len(self.hub.seen)
        result = self.good(**offline)
        self.assertEqual(result.stdout, self.snapshot() + "\n")
        self.assertEqual(len(self.hub.seen), before)


class NameTest(PullTest):
    """MODEL arguments by the name of a hub's model."""

    def command(self, *arguments, **options):
        return run(*arguments, environment=self.environment(), **options)

    def test_commands(self):
        for arguments in (["inspect", NAME], ["tokenize", NAME, "attention"]):
            with self.subTest(arguments=arguments):
                result = self.command(*arguments)
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"`vkformer pull {NAME}`", result.stderr)
        self.good()
        before = len(self.hub.seen)
        folder = os.path.join(SOURCE, "models/g2p-en")
        for arguments in (["tokenize", "{}", "attention"], ["inspect", "{}"],
                          ["quantize", "{}", os.path.join(self.home, "q8")]):
            with self.subTest(arguments=arguments):
                by_name, by_folder = ([word.replace("{}", model) for word in arguments]
                                      for model in (NAME, folder))
                result = self.command(*by_name)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout, self.command(*by_folder).stdout)
        self.assertEqual(len(self.hub.seen), before)  # no command asks the hub

    def test_folder_wins(self):
        self.good()
        beside = os.path.join(self.home, NAME)
        os.makedirs(beside)
        result = subprocess.run([cli_support.PROGRAM, "inspect", NAME], cwd=self.home,
                                capture_output=True, encoding="utf-8",
                                env={**os.environ, **self.environment()})
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no config.json", result.stderr)

    def test_revisions(self):
        other = "f" * 40
        self.hub.revisions.update({"v1": COMMIT, "v2": other, other: other})
        self.good("--revision", "v1")
        self.assertEqual(self.command("inspect", NAME).returncode, 0)  # the only one
        self.good("--revision", "v2")
        result = self.command("inspect", NAME)
        self.assertEqual(result.returncode, 1)
        self.assertIn("has several snapshots", result.stderr)
        self.assertIn(self.path("snapshots", other), result.stderr)
        self.good()
        self.assertEqual(self.command("inspect", NAME).returncode, 0)

    def test_gguf(self):
        folder = os.path.join(SOURCE, "tests/golden")
        case = next(name for name in sorted(os.listdir(folder))
                    if os.path.exists(os.path.join(folder, name, "model/model.gguf")))
        with open(os.path.join(folder, case, "model/model.gguf"), "rb") as file:
            self.hub.files = {"tiny-q8.gguf": File(file.read(), large=True), "x.md": File(b"")}
        self.good()
        for name in (NAME, NAME + ":tiny-q8.gguf"):
            result = self.command("inspect", name)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"`vkformer pull {NAME}:other.gguf`",
                      self.command("inspect", NAME + ":other.gguf").stderr)


if __name__ == "__main__":
    cli_support.PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:3])
    if "without libcurl" in run("pull", NAME, environment={"HF_HUB_OFFLINE": ""}).stderr:
        print("pull: skipped, this build has no libcurl")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
