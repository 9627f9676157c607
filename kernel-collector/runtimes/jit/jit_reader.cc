#include "kernel-collector/runtimes/jit/jit_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"
#include "base/utf8.h"
#include "kernel-collector/processes/maps_parser.h"
#include "kernel-collector/processes/proc_files.h"
#include "kernel-collector/processes/proc_reader.h"
#include "kernel-collector/runtimes/jit/function_text.h"

namespace tributary {
namespace {

constexpr size_t kBufferBytes = 256u << 10;
constexpr size_t kLastBytesMax = 64;

// Adds functions to a builder until it, or the memory for all names, is full.
class Collected {
 public:
  Collected(size_t bytes_max, std::shared_ptr<NamesMemory> memory) : bytes_max_(bytes_max), share_(std::move(memory)) {}
  void Add(const NewCode& code) {
    if (builder_.bytes() >= bytes_max_ || share_.memory()->IsFull()) return void(++refused_);
    builder_.Add(code);
    share_.Resize(builder_.bytes());
  }
  CodeRunBuilder& builder() { return builder_; }
  uint64_t refused() const { return refused_; }

 private:
  const size_t bytes_max_;
  NamesMemoryShare share_;
  CodeRunBuilder builder_;
  uint64_t refused_ = 0;
};

size_t Room(const JitReader::Request& request, const CodeTable& a, const CodeTable& b) {
  const size_t used = a.bytes() + b.bytes();
  return request.memory_bytes_max - std::min(used, request.memory_bytes_max);
}

// Returns the memory with code that has a name.
std::vector<JitNames::Area> ReadAreas(const JitReader::Request& request) {
  std::vector<JitNames::Area> areas;
  const auto maps =
      ReadSmallFile(fmt::format("{}/{}/maps", request.proc_root, request.pid.value), ProcReader::kMapsBytesMax);
  if (!maps.ok()) return areas;
  ParseCodeMaps(*maps, [&](const MapsEntry& entry) {
    if (areas.size() >= JitNames::kAreasMax || !entry.path.starts_with("[anon")) return;
    std::string name(CutUtf8(ToUtf8(entry.path), JitNames::kAreaNameBytesMax));
    areas.push_back({entry.start, entry.end, std::move(name)});
  });
  return areas;
}

}  // namespace

bool JitNames::Find(uint64_t address, MonotonicNs time, CodeName* name) const {
  if (dump.Find(address, time, name) || map.Find(address, time, name)) return true;
  return parent != nullptr && parent->Find(address, time, name);
}

std::string_view JitNames::AreaName(uint64_t address) const {
  const auto it =
      std::upper_bound(areas.begin(), areas.end(), address, [](uint64_t a, const Area& area) { return a < area.end; });
  return it != areas.end() && it->start <= address ? std::string_view(it->name) : "";
}

class JitReader::MapInput {
 public:
  MapInput(JitReader& reader, Collected& collected) : reader_(reader), collected_(collected) {}
  void Reset() {
    reader_.map_parser_.Reset();
    reader_.map_names_.Clear();
  }
  absl::Status Add(std::string_view bytes) {
    reader_.map_parser_.Add(bytes, [this](const PerfMapLine& line) { AddLine(line); });
    return absl::OkStatus();
  }
  void End() {
    reader_.map_parser_.End([this](const PerfMapLine& line) { AddLine(line); });
  }
  uint64_t TakeSkip() { return 0; }

 private:
  void AddLine(const PerfMapLine& line) {
    const FunctionText parts = SplitFunctionText(line.text);
    collected_.Add({.start = line.start, .end = line.end, .name = parts.name, .file = parts.file, .line = parts.line});
  }

  JitReader& reader_;
  Collected& collected_;
};

class JitReader::DumpInput : public JitDumpVisitor {
 public:
  DumpInput(JitReader& reader, Collected& collected) : reader_(reader), collected_(collected) {}
  void Reset() {
    reader_.dump_parser_.Reset();
    reader_.dump_names_.Clear();
  }
  absl::Status Add(std::string_view bytes) { return reader_.dump_parser_.Add(bytes, *this); }
  void End() {}
  uint64_t TakeSkip() { return reader_.dump_parser_.TakeSkip(); }

  void OnCode(const NewCode& code) override { collected_.Add(code); }
  void OnMove(const Move& move) override {
    CodeName name;
    const bool is_known = collected_.builder().FindLast(move.from, &name) ||
                          reader_.dump_names_.Find(move.from, MonotonicNs{INT64_MAX}, &name);
    // The texts belong to the builder, which is about to change.
    const std::string text(name.name), file(name.file);
    collected_.builder().AddGone(move.from, move.from + move.size, move.time);
    if (!is_known) return;
    collected_.Add({.start = move.to,
                    .end = move.to + move.size,
                    .since = move.time,
                    .name = text,
                    .file = file,
                    .line = name.line});
  }

 private:
  JitReader& reader_;
  Collected& collected_;
};

bool JitReader::IsChanged(const ProcessFiles::File& opened, const File& file) {
  if (opened.stat.st_dev != file.device || opened.stat.st_ino != file.inode) return true;
  if (static_cast<uint64_t>(opened.stat.st_size) < file.last_end) return true;
  char now[kLastBytesMax];
  const size_t size = file.last_bytes.size();
  const ssize_t n = pread(opened.fd.get(), now, size, static_cast<off_t>(file.last_end - size));
  return n != static_cast<ssize_t>(size) || file.last_bytes != std::string_view(now, size);
}

template <typename Input>
absl::Status JitReader::ReadFile(const ProcessFiles& files, const std::string& path, File& file, Input& input,
                                 const Request& request, Result* result, bool* at_end) {
  *at_end = true;
  ASSIGN_OR_RETURN(const ProcessFiles::File opened, files.OpenOwned(path));
  if (!file.is_known || IsChanged(opened, file)) {
    input.Reset();
    file = File{.is_known = true, .device = opened.stat.st_dev, .inode = opened.stat.st_ino};
  }
  const auto size = static_cast<uint64_t>(opened.stat.st_size);
  const bool is_same = size == std::exchange(file.size, size);
  RETURN_IF_ERROR(input.Add({}));  // the error of an earlier call
  std::string buffer(kBufferBytes, '\0');
  for (;;) {
    if (file.read >= kFileBytesMax) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("read {}: only the first {} MiB are used", path, kFileBytesMax >> 20));
    }
    if (result->bytes >= request.bytes_max) {
      *at_end = false;
      return absl::OkStatus();
    }
    const size_t wanted = static_cast<size_t>(
        std::min<uint64_t>({kBufferBytes, kFileBytesMax - file.read, request.bytes_max - result->bytes}));
    const ssize_t n = pread(opened.fd.get(), buffer.data(), wanted, static_cast<off_t>(file.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", path, errno);
    if (n == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    result->bytes += bytes.size();
    file.read += bytes.size();
    file.offset += bytes.size();
    file.last_bytes = bytes.substr(bytes.size() - std::min(bytes.size(), kLastBytesMax));
    file.last_end = file.offset;
    RETURN_IF_ERROR(input.Add(bytes));
    // An offset above what off_t can hold ends the reading.
    file.offset = std::min<uint64_t>(file.offset + input.TakeSkip(), INT64_MAX - kBufferBytes);
  }
  if (is_same) input.End();
  return absl::OkStatus();
}

void JitReader::ReadMap(const ProcessFiles& files, const Request& request, const Clock& clock, Result* result,
                        bool* at_end) {
  Collected collected(Room(request, map_names_, dump_names_), memory_);
  MapInput input(*this, collected);
  const uint64_t malformed = map_parser_.malformed();
  result->map = ReadFile(files, fmt::format("tmp/perf-{}.map", files.inner_pid().value), map_file_, input, request,
                         result, at_end);
  result->malformed += map_parser_.malformed() - std::min(malformed, map_parser_.malformed());
  result->refused += collected.refused();
  if (collected.builder().functions() == 0) return;
  result->grew = true;
  const MonotonicNs now = clock.Monotonic();
  // All lines of a reading have the same time, so none of them names the past.
  map_names_.Add(collected.builder().Build({.read_at = now,
                                            .maybe_from = last_complete_,
                                            .lines_are_from = now,
                                            .past_from = MonotonicNs{INT64_MAX},
                                            .memory = memory_}),
                 now);
}

void JitReader::ReadDump(const ProcessFiles& files, const Request& request, const Clock& clock, Result* result,
                         bool* at_end) {
  *at_end = true;
  result->dump = Error(absl::StatusCode::kNotFound, "no jitdump is mapped");
  // A forked process inherits the mapping of its parent's jitdump.
  if (!request.dump_path.ends_with(fmt::format("jit-{}.dump", files.inner_pid().value))) return;
  Collected collected(Room(request, map_names_, dump_names_), memory_);
  DumpInput input(*this, collected);
  const uint64_t malformed = dump_parser_.malformed();
  result->dump = ReadFile(files, request.dump_path, dump_file_, input, request, result, at_end);
  result->malformed += dump_parser_.malformed() - std::min(malformed, dump_parser_.malformed());
  result->refused += collected.refused();
  if (collected.builder().functions() == 0) return;
  result->grew = true;
  const MonotonicNs now = clock.Monotonic();
  dump_names_.Add(collected.builder().Build({.read_at = now,
                                             .by_time = true,
                                             .past_from = MonotonicNs{now.value - CodeTable::kSampleAgeNs},
                                             .memory = memory_}),
                  now);
}

JitReader::Result JitReader::Read(const Request& request, const Clock& clock) {
  Result result;
  result.began = clock.Monotonic();
  auto files = ProcessFiles::Open(request.proc_root, request.pid);
  result.process = files.status();
  if (files.ok() && request.start_ticks != 0 && request.start_ticks != files->start_ticks()) {
    result.process = Error(absl::StatusCode::kNotFound, "another process has the pid now");
  }
  bool map_at_end = true, dump_at_end = true;
  if (result.process.ok()) {
    ReadMap(*files, request, clock, &result, &map_at_end);
    ReadDump(*files, request, clock, &result, &dump_at_end);
    if (request.wants_areas) result.areas = ReadAreas(request);
    if (request.parent.value != 0) {
      const std::optional<std::string> id = ReadContainerId(request.proc_root, request.pid);
      result.is_in_parents_container = id && id == ReadContainerId(request.proc_root, request.parent);
    }
  }
  result.is_complete = map_at_end && dump_at_end;
  result.ended = clock.Monotonic();
  if (result.is_complete) last_complete_ = result.began;
  result.map_names = map_names_;
  result.dump_names = dump_names_;
  return result;
}

}  // namespace tributary
