#include "kernel-collector/probes/live_processes.h"

#include <bpf/bpf.h>

#include <utility>

#include "base/status.h"
#include "kernel-collector/probes/pins.h"

namespace tributary {
namespace {

LiveProcesses::Table ReadPinned(const std::string& path) {
  LiveProcesses::Table table;
  const Fd map(bpf_obj_get(path.c_str()));
  const auto info = MapInfo(map.get());
  if (!info || info->type != BPF_MAP_TYPE_HASH || info->key_size != sizeof(trib_live_key) ||
      info->value_size != sizeof(trib_live_process)) {
    return table;
  }
  trib_live_key key = {}, next = {};
  void* from = nullptr;
  // If the map changes meanwhile, the kernel may begin again with the first key.
  for (size_t i = 0; i < LiveProcesses::kProcessesMax && bpf_map_get_next_key(map.get(), from, &next) == 0; ++i) {
    key = next;
    from = &key;
    trib_live_process process = {};
    if (bpf_map_lookup_elem(map.get(), &key, &process) != 0) continue;
    table.emplace(LiveProcesses::Key{key.pid, key.start_time_ns}, process);
  }
  return table;
}

trib_live_key ToMapKey(const LiveProcesses::Key& key) { return {.start_time_ns = key.start_time_ns, .pid = key.pid}; }

}  // namespace

absl::StatusOr<LiveProcesses> LiveProcesses::Pin(const std::string& folder, bool ignore_earlier) {
  const std::string path = folder + "/processes";
  LiveProcesses live;
  if (!ignore_earlier) live.earlier_ = ReadPinned(path);
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
  live.map_ = Fd(bpf_map_create(BPF_MAP_TYPE_HASH, "trib_live", sizeof(trib_live_key), sizeof(trib_live_process),
                                kProcessesMax, &options));
  if (!live.map_.valid()) return ErrnoStatus("create", "the map of live processes", errno);
  for (const auto& [process, known] : live.earlier_) {
    const trib_live_key key = ToMapKey(process);
    if (bpf_map_update_elem(live.map_.get(), &key, &known, BPF_ANY) == 0) live.written_.insert(process);
  }
  RETURN_IF_ERROR(ReplacePin(live.map_.get(), path));
  return live;
}

void LiveProcesses::Set(const Keys& live, const std::function<trib_live_process(const Key&)>& describe) {
  if (!map_.valid()) return;
  // An update fails only if the kernel has no memory. It is then tried again with the next call.
  absl::erase_if(written_, [&](const Key& entry) {
    const trib_live_key key = ToMapKey(entry);
    return !live.contains(entry) && bpf_map_delete_elem(map_.get(), &key) == 0;
  });
  const Keys changed = std::exchange(changed_, {});
  for (const Key& key : live) {
    const bool is_written = written_.contains(key);
    if (is_written ? !changed.contains(key) : written_.size() >= kProcessesMax) continue;
    const trib_live_key map_key = ToMapKey(key);
    const trib_live_process process = describe(key);
    if (bpf_map_update_elem(map_.get(), &map_key, &process, BPF_ANY) == 0) written_.insert(key);
  }
}

}  // namespace tributary
