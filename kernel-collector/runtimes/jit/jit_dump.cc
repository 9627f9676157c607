#include "kernel-collector/runtimes/jit/jit_dump.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "kernel-collector/runtimes/jit/function_text.h"

namespace tributary {
namespace {

constexpr uint32_t kMagic = 0x4A695444, kMagicOfOtherOrder = 0x4454694A;
constexpr uint32_t kVersion = 1;
constexpr uint64_t kArchTimestamp = 1;  // a flag: the times are of a clock of the processor
constexpr uint32_t kHeaderBytesMax = 65'536;

enum RecordKind : uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2, kClose = 3 };

constexpr size_t kLoadBytes = 56, kMoveBytes = 64, kDebugInfoBytes = 32, kLineBytes = 16;
constexpr std::string_view kSameFile = "\xff";
constexpr uint64_t kElfHeaderBytes = 0x40;

// The caller must check the bounds.
template <typename T>
T Get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

MonotonicNs TimeOf(std::string_view record) {
  return MonotonicNs{static_cast<int64_t>(std::min<uint64_t>(Get<uint64_t>(record, 8), INT64_MAX))};
}

}  // namespace

absl::Status JitDumpParser::Add(std::string_view bytes, JitDumpVisitor& visitor) {
  for (;;) {
    if (state_ == State::kFailed) return failure_;
    const size_t skipped = static_cast<size_t>(std::min<uint64_t>(skip_, bytes.size()));
    bytes.remove_prefix(skipped);
    skip_ -= skipped;
    if (skip_ > 0) return absl::OkStatus();
    const size_t taken = std::min(bytes.size(), wanted_ - record_.size());
    record_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (record_.size() < wanted_) return absl::OkStatus();
    absl::Status status;
    if (state_ == State::kHeader) {
      status = ParseHeader();
    } else if (state_ == State::kRecordHeader) {
      status = BeginRecord();
    } else {
      EndRecord(visitor);
    }
    if (!status.ok()) {
      state_ = State::kFailed;
      failure_ = std::move(status);
    }
  }
}

uint64_t JitDumpParser::TakeSkip() { return std::exchange(skip_, 0); }

absl::Status JitDumpParser::ParseHeader() {
  const auto magic = Get<uint32_t>(record_, 0), version = Get<uint32_t>(record_, 4), size = Get<uint32_t>(record_, 8);
  if (magic == kMagicOfOtherOrder) return Error(absl::StatusCode::kUnimplemented, "jitdump: of another byte order");
  if (magic != kMagic || size < kHeaderBytes || size > kHeaderBytesMax) {
    return Error(absl::StatusCode::kInvalidArgument, "jitdump: not a jitdump");
  }
  if (version != kVersion) return Error(absl::StatusCode::kUnimplemented, "jitdump: of another version");
  if ((Get<uint64_t>(record_, 32) & kArchTimestamp) != 0) {
    return Error(absl::StatusCode::kUnimplemented, "jitdump: its times are not of CLOCK_MONOTONIC");
  }
  skip_ = size - kHeaderBytes;
  record_.clear();
  wanted_ = kRecordHeaderBytes;
  state_ = State::kRecordHeader;
  return absl::OkStatus();
}

absl::Status JitDumpParser::BeginRecord() {
  const auto kind = Get<uint32_t>(record_, 0), size = Get<uint32_t>(record_, 4);
  if (size < kRecordHeaderBytes) return Error(absl::StatusCode::kInvalidArgument, "jitdump: a record is too short");
  size_t wanted = kRecordHeaderBytes;
  if (kind == kLoad) wanted = kLoadBytes + kTextBytesMax;
  if (kind == kMove) wanted = kMoveBytes;
  if (kind == kDebugInfo) wanted = kLinesBytesMax;
  wanted_ = std::min<size_t>(wanted, size);
  rest_ = size - wanted_;
  state_ = State::kRecord;
  return absl::OkStatus();
}

void JitDumpParser::EndRecord(JitDumpVisitor& visitor) {
  switch (Get<uint32_t>(record_, 0)) {
    case kLoad:
      ParseLoad(visitor);
      break;
    case kMove:
      ParseMove(visitor);
      break;
    case kDebugInfo:
      ParseLines();
      break;
    case kClose:
      closed_ = true;
      break;
    default:
      break;  // unwind information, or a record of a later version
  }
  skip_ = rest_;
  record_.clear();
  wanted_ = kRecordHeaderBytes;
  state_ = State::kRecordHeader;
}

void JitDumpParser::ParseLoad(JitDumpVisitor& visitor) {
  const std::vector<Line> lines = std::exchange(lines_, {});
  if (record_.size() <= kLoadBytes) return void(++malformed_);
  const uint64_t start = Get<uint64_t>(record_, 32), size = Get<uint64_t>(record_, 40);
  std::string_view text = std::string_view(record_).substr(kLoadBytes);
  text = text.substr(0, text.find('\0'));
  if (text.empty() || size == 0 || start + size < start) return void(++malformed_);
  const FunctionText parts = SplitFunctionText(text);
  std::vector<NewCode::Line> rows;
  if (lines_of_ == start) {
    const bool is_shifted = IsV8Text(text) && std::all_of(lines.begin(), lines.end(), [&](const Line& line) {
                              return line.address >= start + kElfHeaderBytes;
                            });
    for (const Line& line : lines) {
      rows.push_back({line.address - (is_shifted ? kElfHeaderBytes : 0), line.line,
                      std::string_view(line_files_).substr(line.file_at, line.file_size)});
    }
  }
  visitor.OnCode({.start = start,
                  .end = start + size,
                  .since = TimeOf(record_),
                  .name = parts.name,
                  .file = parts.file,
                  .line = parts.line,
                  .lines = rows});
}

void JitDumpParser::ParseMove(JitDumpVisitor& visitor) {
  if (record_.size() < kMoveBytes) return void(++malformed_);
  const JitDumpVisitor::Move move{Get<uint64_t>(record_, 32), Get<uint64_t>(record_, 40), Get<uint64_t>(record_, 48),
                                  TimeOf(record_)};
  if (move.size == 0 || move.from + move.size < move.from || move.to + move.size < move.to) {
    return void(++malformed_);
  }
  visitor.OnMove(move);
}

void JitDumpParser::ParseLines() {
  lines_.clear();
  line_files_.clear();
  if (record_.size() < kDebugInfoBytes) return void(++malformed_);
  lines_of_ = Get<uint64_t>(record_, 16);
  const uint64_t count = Get<uint64_t>(record_, 24);
  size_t at = kDebugInfoBytes, file_at = 0, file_size = 0;
  for (uint64_t i = 0; i < count && record_.size() - at > kLineBytes; ++i) {
    Line line{Get<uint64_t>(record_, at), Get<uint32_t>(record_, at + 8)};
    const size_t end = record_.find('\0', at + kLineBytes);
    if (end == std::string::npos) break;
    const std::string_view file = std::string_view(record_).substr(at + kLineBytes, end - at - kLineBytes);
    if (file != kSameFile && file != std::string_view(line_files_).substr(file_at, file_size)) {
      file_at = line_files_.size();
      file_size = file.size();
      line_files_.append(file);
    }
    line.file_at = file_at;
    line.file_size = file_size;
    lines_.push_back(line);
    at = end + 1;
  }
}

}  // namespace tributary
