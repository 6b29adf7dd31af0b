"""Serve the built book on this machine, compressed as a web server would: `make serve`."""

import argparse
import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from check_book import BUILT
from tornado import httpserver, netutil, web

PORT = 8000
YEAR = 365 * 24 * 3600


class Files(web.StaticFileHandler):
    """Files of the book: kept for a year where the address names a version, asked for anew elsewhere."""

    def set_extra_headers(self, path: str) -> None:
        """Say how long a browser may keep the file."""
        versioned = self.get_query_argument("v", "") or self.get_query_argument("digest", "")
        keep = f"public, max-age={YEAR}, immutable" if versioned else "no-cache"
        self.set_header("Cache-Control", keep)

    def compute_etag(self) -> str | None:
        """Tell compressed files from plain ones: by the file, weakly."""
        tag = super().compute_etag()
        return f"W/{tag}" if tag else None


def application(folder: Path) -> web.Application:
    """The web application that serves a folder, gzipped where that helps."""
    settings = {"path": str(folder), "default_filename": "index.html"}
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    return web.Application([(r"/(.*)", Files, settings)], compress_response=True)


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve `folder` at a free port or a given one, for this machine alone; give the address."""
    if not 0 <= port <= 65535:
        raise OSError("ports go from 0 to 65535")
    sockets = netutil.bind_sockets(port, address="127.0.0.1")
    started: Future[asyncio.AbstractEventLoop] = Future()
    ended = asyncio.Event()

    async def serve() -> None:
        server = httpserver.HTTPServer(application(folder))
        server.add_sockets(sockets)
        started.set_result(asyncio.get_running_loop())
        await ended.wait()
        server.stop()
        await server.close_all_connections()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, serve())
        try:
            yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
        finally:
            started.result().call_soon_threadsafe(ended.set)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=BUILT, help="the folder of the built book")
    options.add_argument("--port", type=int, default=PORT, help=f"the port to listen at (default: {PORT})")
    chosen = options.parse_args(arguments)
    folder = chosen.folder.resolve()
    if not (folder / "index.html").exists():
        print(f"error: there is no book in {folder}; run `make book` first.", file=sys.stderr)
        return 1
    try:
        with suppress(KeyboardInterrupt), served(folder, chosen.port) as address:
            print(f"The book is at {address} (Ctrl+C stops it)", flush=True)
            threading.Event().wait()
    except OSError as error:
        print(f"error: port {chosen.port} cannot be used ({error}); try PORT=8001", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
