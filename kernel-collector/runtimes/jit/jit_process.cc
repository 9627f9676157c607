#include "kernel-collector/runtimes/jit/jit_process.h"

#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

JitProcess::JitProcess(JitRuntimes& owner, Pid pid, std::shared_ptr<NamesMemory> memory)
    : owner_(owner), pid_(pid), reader_(std::make_shared<JitReader>(std::move(memory))) {}

void JitProcess::Want() const {
  if (state_ != State::kIdle || owner_.wanted_.size() >= JitRuntimes::kWaitingMax) return;
  state_ = State::kWanted;
  // Only the queue changes the process.
  owner_.wanted_.push_back(std::const_pointer_cast<JitProcess>(shared_from_this()));
}

// Returns true if a reading will begin after the sample, and soon enough for it.
bool JitProcess::CanWait(const Query& query) const {
  if (state_ == State::kEnded) return false;
  if (parent_ != nullptr) return true;
  if (query.time <= read_at_) return false;
  if (unnamed_pages_.contains(query.address / kPageBytes)) return false;
  return due_.value <= query.time.value + kWaitNs;
}

Runtime::Found JitProcess::Find(const Query& query, std::vector<ResolvedFrame>* frames) const {
  CodeName name;
  if (names_->Find(query.address, query.time, &name)) {
    if (query.time.value > read_at_.value + JitRuntimes::kRefreshNs) Want();
    frames->push_back({.kind = FrameKind::kJit,
                       .executable = name.file.empty() ? nullptr : FileOf(name.file),
                       .position = name.line,
                       .name = name.name});
    return Found::kFrames;
  }
  if (query.time > read_at_) Want();
  if (CanWait(query)) return Found::kLater;
  owner_.unnamed_.Add();
  if (const std::string_view area = names_->AreaName(query.address); !area.empty()) {
    frames->push_back({.kind = FrameKind::kJit, .name = area});
    return Found::kFrames;
  }
  wants_areas_ = true;
  if (unnamed_pages_.size() < kUnnamedPagesMax) unnamed_pages_.insert(query.address / kPageBytes);
  return Found::kUnknown;
}

CodeFile* JitProcess::FileOf(std::string_view path) const {
  const auto it = files_.find(ToAbsl(path));
  if (it != files_.end()) return it->second.get();
  if (files_.size() >= kFilesMax) return nullptr;
  return files_.emplace(std::string(path), MakeNamedCode(std::string(path), "")).first->second.get();
}

}  // namespace tributary
