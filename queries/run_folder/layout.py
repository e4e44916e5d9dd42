"""The names of files and folders in the folder of a run, relative to it.

::

    run.json                 the record of the run, written by the supervisor
    lock                     held by the supervisor
    summary.txt              the loss summary, which gscope stop prints; empty until it ends
    logs/                    events of the run
        stderr.log           standard error of a run in the background
    confinement.json         rights that the processes give up
    program.json             the program
    capture.json             settings of the capture daemon
    engine.json              settings of the HFTA job
    job-secrets.json         its secrets, for its user alone; missing if it has none
    log/                     the stream log
        limits.json          the limits above which a full log has removed rows
    capture/                 writable for the capture daemon
        capture.sock         the server of the stream log
        remote.sock          its server for other hosts, behind the TCP listener
        stats.json           counters
        leases-READER.json   batches that a reader is reading
        saved.json           how much of the file of saved packets is whole
        packets/             recent packets of groups, see ``capture/saving/packet_ring.py``
    job/                     writable for the HFTA job
        outputs/             answers of steps
        stats.json           counters
        traces/              traces of heartbeats
    packets/                 folder of the process that searches recent packets for groups
    outlets/                 rows that destinations of --to have not accepted, in segments
        stats.json           counters
    hosts.json               hosts whose agents capture for the run, and their interfaces
    hosts/                   what the run asks each of them to capture
    answered.json            epochs that lack packets, of results that other hosts have answered
    saved-groups.json        how much of the file of saved packets of groups is whole
    tmp/                     temporary files of both processes

What is in ``log/`` and ``job/`` beyond that is the business of ``capture/log`` and
``engine/storage``.
"""

from __future__ import annotations

RUN_FILE = "run.json"
LOCK_FILE = "lock"
SUMMARY_FILE = "summary.txt"
LOGS_FOLDER = "logs"
STDERR_FILE = f"{LOGS_FOLDER}/stderr.log"

CONFINEMENT_FILE = "confinement.json"
PROGRAM_FILE = "program.json"
CAPTURE_SETTINGS_FILE = "capture.json"
JOB_SETTINGS_FILE = "engine.json"
JOB_SECRETS_FILE = "job-secrets.json"

LOG_FOLDER = "log"
LIMITS_FILE = "limits.json"
"""In the folder of the log."""

CAPTURE_FOLDER = "capture"
SOCKET_FILE = f"{CAPTURE_FOLDER}/capture.sock"
REMOTE_SOCKET_FILE = f"{CAPTURE_FOLDER}/remote.sock"
CAPTURE_STATISTICS_FILE = f"{CAPTURE_FOLDER}/stats.json"
SAVED_PACKETS_FILE = f"{CAPTURE_FOLDER}/saved.json"
PACKET_RING_FOLDER = f"{CAPTURE_FOLDER}/packets"
PACKET_SEARCH_FOLDER = "packets"
OUTLETS_FOLDER = "outlets"
OUTLETS_STATISTICS_FILE = f"{OUTLETS_FOLDER}/stats.json"
ROW_METRICS_FILE = "row-metrics.json"
HOSTS_FILE = "hosts.json"
HOSTS_FOLDER = "hosts"
SAVED_GROUPS_FILE = "saved-groups.json"
ANSWERED_FILE = "answered.json"
JOB_FOLDER = "job"
JOB_STATISTICS_FILE = f"{JOB_FOLDER}/stats.json"
TEMPORARY_FOLDER = "tmp"

OUTPUTS_FOLDER = "outputs"
"""Relative to ``JOB_FOLDER``, as the next one."""
TRACES_FOLDER = "traces"
