"""Runs the scripts beside it, each in a forked process of its own, so that a client is imported once.

`forking.py {socket} {client}` listens on a socket. Who connects sends a line of JSON, a script's path and its words,
and reads what that script prints, its traceback too, until the connection's end.
"""

import importlib
import json
import os
import runpy
import socketserver
import sys


class Script(socketserver.StreamRequestHandler):
    def handle(self):
        sys.argv = json.loads(self.rfile.readline())
        for stream in (1, 2):
            os.dup2(self.request.fileno(), stream)
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.stdout.flush()


class Scripts(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    def handle_error(self, request, client_address):
        sys.excepthook(*sys.exc_info())


importlib.import_module(sys.argv[2])
with Scripts(sys.argv[1], Script) as scripts:
    print("ready", flush=True)
    scripts.serve_forever()
