#include "kernel-collector/probes/sideband_record.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <cstring>
#include <optional>
#include <string_view>

namespace tributary {
namespace {

// Takes fields off the front. After the bytes ran short, every field is zero and ok() is false.
class Fields {
 public:
  explicit Fields(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return value;
    }
    memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  // Takes the whole rest as a string, cut at its NUL. The record is bad without a NUL.
  std::string_view TakeString() {
    const void* end = rest_.empty() ? nullptr : memchr(rest_.data(), 0, rest_.size());
    if (end == nullptr) {
      ok_ = false;
      return {};
    }
    auto* begin = reinterpret_cast<const char*>(rest_.data());
    return {begin, static_cast<size_t>(static_cast<const char*>(end) - begin)};
  }
  bool ok() const { return ok_; }

 private:
  std::span<const uint8_t> rest_;
  bool ok_ = true;
};

struct Mmap2Fields {
  uint32_t pid, tid;
  uint64_t start, length, file_offset;
  uint8_t identity[24];  // by MISC_MMAP_BUILD_ID: size, 3 reserved, 20 bytes; else major, minor, inode, generation
  uint32_t protection, flags;
};
static_assert(sizeof(Mmap2Fields) == 64);

SidebandRecord ParseMmap(uint16_t misc, Fields fields, MonotonicNs time) {
  auto raw = fields.Take<Mmap2Fields>();
  MmapEvent event{.time = time,
                  .pid = Pid{static_cast<int32_t>(raw.pid)},
                  .tid = Tid{static_cast<int32_t>(raw.tid)},
                  .start = raw.start,
                  .length = raw.length,
                  .file_offset = raw.file_offset,
                  .executable = (raw.protection & PROT_EXEC) != 0};
  event.path = fields.TakeString();
  if (!fields.ok() || raw.length == 0 || raw.start + raw.length < raw.start) return BadRecord{};
  if (!event.executable) return IgnoredRecord{};
  if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
    size_t size = raw.identity[0];
    if (size > ExecutableId::kSizeMax) return BadRecord{};
    auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(raw.identity + 4, size));
    if (id.has_value()) event.build_id = *id;
  } else {
    memcpy(&event.device_major, raw.identity, 4);
    memcpy(&event.device_minor, raw.identity + 4, 4);
    memcpy(&event.inode, raw.identity + 8, 8);
  }
  return event;
}

SidebandRecord ParseTask(bool is_fork, Fields fields, MonotonicNs time) {
  auto pid = fields.Take<int32_t>();
  auto parent = fields.Take<int32_t>();
  auto tid = fields.Take<int32_t>();
  auto parent_tid = fields.Take<int32_t>();
  if (!fields.ok()) return BadRecord{};
  if (!is_fork) return ExitEvent{.time = time, .pid = Pid{pid}, .tid = Tid{tid}};
  return ForkEvent{
      .time = time, .pid = Pid{pid}, .parent = Pid{parent}, .tid = Tid{tid}, .parent_tid = Tid{parent_tid}};
}

SidebandRecord ParseComm(uint16_t misc, Fields fields, MonotonicNs time) {
  CommEvent event{.time = time, .exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0};
  event.pid = Pid{fields.Take<int32_t>()};
  event.tid = Tid{fields.Take<int32_t>()};
  event.comm = fields.TakeString();
  if (!fields.ok()) return BadRecord{};
  return event;
}

struct KsymbolFields {
  uint64_t start;
  uint32_t length;
  uint16_t type, flags;
};
static_assert(sizeof(KsymbolFields) == 16);

SidebandRecord ParseKsymbol(Fields fields, MonotonicNs time) {
  auto raw = fields.Take<KsymbolFields>();
  KernelCodeEvent event{.time = time,
                        .start = raw.start,
                        .length = raw.length,
                        .is_bpf = raw.type == PERF_RECORD_KSYMBOL_TYPE_BPF,
                        .gone = (raw.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0};
  event.name = fields.TakeString();
  if (!fields.ok() || raw.length == 0 || raw.start + raw.length < raw.start || event.name.empty()) return BadRecord{};
  return event;
}

SidebandRecord ParseCgroup(Fields fields, MonotonicNs time) {
  CgroupEvent event{.time = time, .id = fields.Take<uint64_t>()};
  event.path = fields.TakeString();
  if (!fields.ok() || event.id == 0 || !event.path.starts_with('/')) return BadRecord{};
  return event;
}

SidebandRecord ParseLost(Fields fields) {
  fields.Take<uint64_t>();  // the event's id: each ring has one
  auto lost = fields.Take<uint64_t>();
  if (!fields.ok()) return BadRecord{};
  return LostEvent{.events = lost};
}

}  // namespace

MonotonicNs SidebandRecordTime(std::span<const uint8_t> record) {
  if (record.size() < sizeof(perf_event_header) + kSampleIdBytes) return MonotonicNs{};
  int64_t time = 0;
  memcpy(&time, record.data() + record.size() - 16, sizeof(time));
  return MonotonicNs{time};
}

SidebandRecord ParseSidebandRecord(std::span<const uint8_t> record) {
  perf_event_header header = {};
  if (record.size() < sizeof(header) + kSampleIdBytes) return BadRecord{};
  memcpy(&header, record.data(), sizeof(header));
  if (header.size != record.size()) return BadRecord{};
  Fields fields(record.subspan(sizeof(header), record.size() - sizeof(header) - kSampleIdBytes));
  MonotonicNs time = SidebandRecordTime(record);
  switch (header.type) {
    case PERF_RECORD_MMAP2:
      return ParseMmap(header.misc, fields, time);
    case PERF_RECORD_FORK:
      return ParseTask(/*is_fork=*/true, fields, time);
    case PERF_RECORD_EXIT:
      return ParseTask(/*is_fork=*/false, fields, time);
    case PERF_RECORD_COMM:
      return ParseComm(header.misc, fields, time);
    case PERF_RECORD_KSYMBOL:
      return ParseKsymbol(fields, time);
    case PERF_RECORD_CGROUP:
      return ParseCgroup(fields, time);
    case PERF_RECORD_LOST:
      return ParseLost(fields);
    default:
      return IgnoredRecord{};
  }
}

}  // namespace tributary
