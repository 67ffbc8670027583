"""The program in processes of their own that start fast: forked from one that has imported it all."""

import multiprocessing
import os
import sys

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        *(
            "misslink.cli.main",
            "misslink.cli.evaluate",
            "misslink.pipeline",
            "misslink.report.page",
        ),
        *(
            "misslink.report.case_table",
            "misslink.metrics.faithfulness",
            "misslink.engines.ray.engine",
        ),
        *("pyarrow", "rich.progress", "scipy.special", "typer.rich_utils"),
    ]
)


def start(arguments, folder, **environment):
    """Start ``misslink ARGUMENTS`` in `folder`; what it reports on stderr is in its file ``stderr``."""
    process = _CONTEXT.Process(target=_run, args=(list(arguments), str(folder), environment))
    process.start()
    return process


def finish(process, folder):
    """Wait for its end; gives exit code, which is below 0 for a signal, and stderr."""
    process.join()
    return process.exitcode, (folder / "stderr").read_text(encoding="utf-8")


def _run(arguments, folder, environment):
    from misslink.cli.main import main

    os.chdir(folder)
    os.environ.update(environment)
    for name, file in ((os.devnull, 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), file)
    sys.argv = ["misslink", *arguments]
    main()
