"""Whether the requests of a run got through: most operations of the document were answered with a success.

Reads the document and the service's own counts: reached.py URL, with an admin's key on standard input.
"""

import json
import re
import sys
import urllib.request

# Some need what no request guesses: a tool that is in a catalog, an endpoint that answers.
ENOUGH = 0.85

url, key = sys.argv[1], sys.stdin.read().strip()


def read(path):
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {key}"})
    return urllib.request.urlopen(request, timeout=60).read().decode()


succeeded = set()
for line in read("/metrics").splitlines():
    if line.startswith("toolrack_http_request_duration_seconds_count{"):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels["status"].startswith("2"):
            succeeded.add((labels["method"].lower(), labels["route"]))
methods = {"get", "put", "post", "patch", "delete"}
document = json.loads(read("/openapi.json"))
operations = {(method, path) for path, item in document["paths"].items() for method in item if method in methods}
missing = sorted(operations - succeeded)
print(f"{len(operations) - len(missing)} of {len(operations)} operations succeeded; never:", *(f"{m} {p}," for m, p in missing))
if len(missing) > len(operations) * (1 - ENOUGH):
    sys.exit("the requests do not get through")
