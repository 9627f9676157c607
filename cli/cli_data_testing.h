#pragma once

#include <string_view>

namespace tributary::cli::testing {

// An answer of /api/v1/flamegraph. The function main calls spin (60 samples), a kernel function (30 samples) and an
// inlined function (10 samples). The names of the inlined function and of the executable contain characters that must
// be escaped.
constexpr std::string_view kFlameGraphJson = R"json({
  "from": 1763710000000, "to": 1763710060000, "type": "cpu", "unit": "nanoseconds",
  "total": {"ns": 1000000000, "count": 100}, "truncated_nodes": 3,
  "names": ["all", "main", "spin<int>(int&)", "do_syscall_64", "a;b \"c\"\n\u001b[31m"],
  "nodes": {"parent": [-1, 0, 1, 1, 1], "name": [0, 1, 2, 3, 4], "kind": [0, 1, 1, 2, 3],
            "total_ns": [1000000000, 1000000000, 600000000, 300000000, 100000000],
            "self_ns": [0, 0, 600000000, 300000000, 100000000],
            "total_count": [100, 100, 60, 30, 10], "self_count": [0, 0, 60, 30, 10],
            "executable": [-1, 0, 0, -1, 0]},
  "executables": ["truth&<script>"]
})json";

constexpr std::string_view kStatusJson = R"json({
  "version": "0.1.0", "uptime_s": 12, "total": {"captured": 1140, "idle": 20, "stored": 1100,
  "lost": {"ring_full": 30, "stack_error": 5}, "in_flight": 5},
  "stack_health": {"complete": 1000, "unknown": 100},
  "nodes": [{"id": "abc", "host": "web-1", "kernel": "5.10", "architecture": "amd64", "version": "0.1.0", "cpus": 2,
             "sample_rate_hz": 19, "connected": true, "last_seen": 1763710060000, "captured": 1140, "idle": 20,
             "stored": 1100, "lost": {"ring_full": 30, "stack_error": 5}, "in_flight": 5, "wire_bytes": 5500,
             "stack_health": {"complete": 1000, "unknown": 100}}],
  "refusals": [{"node": "abc", "reason": "trie_quota", "amount": 1200}],
  "reducer": {"cpu_seconds": 0.5, "rss_bytes": 52428800, "disk_bytes": 1048576, "shards": 1, "symbol_tables": 12}})json";

constexpr std::string_view kStackHealthJson = R"json({"samples": 1000, "ns": 52000000000,
  "endings": {"complete": 900, "kernel_only": 50, "no_table": 40, "frame_pointer_lost": 10}, "endings_ns": {},
  "complete_share": 0.947368, "executables": [
  {"name": "libold.so", "build_id": "ab01", "samples": 45, "ns": 1, "endings": {"no_table": 40, "frame_pointer_lost": 5},
   "programs": ["server", "ba\u0007tch"]},
  {"name": "[unmapped]", "build_id": "", "samples": 5, "ns": 1, "endings": {"frame_pointer_lost": 5}, "programs": []}],
  "truncated_executables": 3})json";

constexpr std::string_view kTopJson = R"json({"total": {"ns": 1000000000, "count": 100}, "functions": [
  {"name": "spin", "executable": "truth", "kind": 1, "self_ns": 600000000, "self_count": 60, "total_ns": 600000000,
   "total_count": 60},
  {"name": "do_\u0007syscall", "executable": "", "kind": 2, "self_ns": 300000000, "self_count": 30,
   "total_ns": 900000000, "total_count": 90}]})json";

constexpr std::string_view kSeriesJson = R"json({"processes": [
  {"pid": 100, "parent_pid": 1, "start_time_ns": 5, "command": "sh", "executable": "dash", "ns": 5, "count": 1},
  {"pid": 101, "parent_pid": 100, "command": "cc1", "ns": 50, "count": 10}],
  "threads": [], "containers": [], "hosts": [], "truncated": true})json";

}  // namespace tributary::cli::testing
