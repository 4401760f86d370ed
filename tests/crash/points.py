"""The crash points of a scene, one after the other: ``run_supervised(SOURCE, scene, step, folder)``.

A point is one system call that changes a file or makes it durable. The process is killed in place of it; the scene then
runs again and is killed one call later (of writes `step` calls later), until it ends by itself.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from tests.crash.scenes import SCENES, Scene, Tell
from tests.faults.forks import in_fork
from tests.faults.syscalls import NAMES, supervise

__all__ = ["SOURCE", "main"]

SOURCE = """
import sys
from tests.crash.points import main
main(*sys.argv[1:])
"""

_points_max = 5000


def main(name: str, step: str, folder: str) -> None:
    """Print as JSON how many points there were by system call, and what was wrong at which."""
    scene, root = SCENES[name], Path(folder)
    before = root / "before"
    before.mkdir()
    assert 0 == in_fork(lambda tell: asyncio.run(_awaiting(scene.prepare(before)))).code
    points: dict[str, int] = {}
    wrong: list[Any] = []
    for call in NAMES:
        for nth in range(1, _points_max, int(step) if call == "pwrite64" else 1):
            killed, complaints = _one(scene, before, root / f"{call}-{nth}", call, nth)
            if complaints:
                wrong.append([call, nth, complaints])
            if not killed:
                break
            points[call] = points.get(call, 0) + 1
    print(json.dumps({"points": points, "wrong": wrong}))


def _one(scene: Scene, before: Path, work: Path, call: str, nth: int) -> tuple[bool, list[str]]:
    """Run a scene to its nth call of a name; return whether it was killed there, and the judgement."""
    shutil.copytree(before, work)

    def act(tell: Tell) -> None:
        with supervise(under=work) as calls:
            calls.kill_at(call, nth)
            asyncio.run(_awaiting(scene.act(work, tell)))

    ended = in_fork(act)
    assert ended.code in (0, -9), f"the scene failed with {ended}"
    judged = in_fork(lambda tell: tell(asyncio.run(_awaiting(scene.judge(work, ended.told)))))
    complaints: list[str] = judged.told[0] if judged.code == 0 else ["the judge failed, see above"]
    shutil.rmtree(work)
    return ended.code != 0, complaints


async def _awaiting(work: Any) -> Any:
    return await work
