"""The program in processes of their own that start fast: forked from one that has imported it all."""

import json
import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import ModuleType

import optional_models

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "misslink.api.compare",
        "misslink.api.whatif",
        "misslink.cli.evaluate",
        "misslink.cli.main",
        "misslink.engines.batch",
        "misslink.engines.ray.engine",
        "misslink.goldset.generation.corpus",
        "misslink.linking.embedding_map",
        "misslink.metrics.faithfulness",
        "misslink.pipeline.evaluate",
        "misslink.report.case_table",
        "misslink.report.gate_reports",
        "misslink.report.page",
        "misslink.selftests.runner",
        "langchain_core.language_models.chat_models",
        "langchain_core.output_parsers.string",
        "langchain_core.prompts.chat",
        "langchain_core.retrievers",
        "langchain_core.tracers.log_stream",
        "langchain_core.tracers.langchain",
        "langchain_core.vectorstores.base",
        "openai.resources.chat.completions",
        "pyarrow",
        "rich.progress",
        "scipy.stats",
        "typer.rich_utils",
    ]
)


def start(arguments, folder, program="misslink", **environment):
    """Start ``misslink ARGUMENTS`` in `folder`, or ``python``; what it reports on stderr is in its file ``stderr``."""
    process = _CONTEXT.Process(
        target=_run, args=(program, list(arguments), str(folder), environment)
    )
    process.start()
    return process


def finish(process, folder):
    """Wait for its end; gives exit code, which is below 0 for a signal, and stderr."""
    process.join()
    return process.exitcode, (folder / "stderr").read_text(encoding="utf-8")


def _run(program, arguments, folder, environment):
    os.chdir(folder)
    os.environ.update(environment)
    for name, file in ((os.devnull, 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), file)
    _call(program, arguments)


def _call(program, arguments):
    optional_models.leave_out()
    sys.argv = [program, *arguments]
    if program == "misslink":
        from misslink.cli.main import main

        main()
        return
    script, *sys.argv[1:] = arguments
    if script == "-c":
        code = sys.argv.pop(1)
        sys.argv[0] = "-c"
        sys.path.insert(0, "")
        sys.modules["__main__"] = module = ModuleType("__main__")
        exec(code, vars(module))  # noqa: S102 (as `python -c`)
    elif script == "-m":
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 (as Python does)
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = script
        sys.path.insert(0, str(Path(script).resolve().parent))
        runpy.run_path(script, run_name="__main__")


# The shell finds these before the real ones. Each hands what it was called with, and its files, to a
# thread of the tests, and ends with the exit code of the process that this starts.
_STUB = """#!{python} -SI
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    call = json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(asked, [len(call).to_bytes(4, "big")], [0, 1, 2])
    asked.sendall(call)
    code = int(asked.recv(8))
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def commands():
    """A folder with ``misslink`` and ``python``, which start fast; to put first on a PATH."""
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as server:
        folder = Path(name)
        server.bind(address := str(folder / "socket"))
        server.listen()
        for program in ("misslink", "python"):
            stub = folder / program
            stub.write_text(_STUB.format(python=sys.executable, address=address, name=program))
            stub.chmod(0o700)
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        try:
            yield folder
        finally:
            server.shutdown(socket.SHUT_RDWR)


def _serve(server):
    with suppress(OSError):  # closed
        while True:
            threading.Thread(target=_answer, args=server.accept()[:1], daemon=True).start()


def _answer(asked):
    with asked, asked.makefile("rb") as sent:
        size, files, _, _ = socket.recv_fds(asked, 4, 3)
        call = json.loads(sent.read(int.from_bytes(size, "big")))
        process = _CONTEXT.Process(target=_run_command, args=(*call, [*map(DupFd, files)]))
        process.start()
        for file in files:
            os.close(file)
        process.join()
        asked.sendall(str(process.exitcode).encode())


def _run_command(program, arguments, folder, environment, files):
    for number, file in enumerate(files):
        os.dup2(file.detach(), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (multiprocessing closed it)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _call(program, arguments)
