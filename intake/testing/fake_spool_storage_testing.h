#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "intake/spool/spool_storage.h"

// For tests: simulates the disk of a spool in memory, with a random seed. The disk can be full, and operations can
// fail. A kill of the process can stop an operation in the middle. A loss of power loses or damages bytes that were not
// synced.

namespace tributary::intake {

class FakeSpoolStorage : public SpoolStorage {
 public:
  explicit FakeSpoolStorage(uint64_t seed) : random_(seed) {}

  // Sets the size of the disk. If all files together have more bytes, the disk is full.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  // The next `operations` operations succeed, and the operation after them fails (EIO). A part of it may be done. Later
  // operations succeed again.
  void FailAfter(uint64_t operations) { fail_at_ = operations_ + operations + 1; }
  // Like FailAfter, but all later operations fail, too, until Restart: the process was killed during the operation.
  void KillAfter(uint64_t operations) { kill_at_ = operations_ + operations + 1; }
  // Kills the process now, between two operations.
  void Kill() { dead_ = true; }
  void NoFaults() { fail_at_ = kill_at_ = UINT64_MAX; }
  bool dead() const { return dead_; }
  uint64_t operations() const { return operations_; }

  // Starts a new process. The files have all bytes that the old process wrote.
  void Restart() {
    dead_ = false;
    NoFaults();
  }
  // Simulates a loss of power and a new boot. The files have all synced bytes, and any part of the other bytes.
  void LosePower() {
    for (auto it = files_.begin(); it != files_.end();) {
      File& file = it->second;
      if (!file.name_synced && Below(2) == 0) {
        it = files_.erase(it);
        continue;
      }
      file.bytes = Torn(file.synced, file.bytes);
      file.synced = file.bytes;
      file.name_synced = true;
      ++it;
    }
    Restart();
  }

  // The next functions are for tests that inspect or damage files.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, file] : files_) out.push_back(name);
    return out;
  }
  std::string& bytes(const std::string& name) { return files_[name].bytes; }
  void Damage(const std::string& name, uint64_t offset, uint8_t flip) {
    for (std::string* bytes : {&files_[name].bytes, &files_[name].synced}) {
      if (offset < bytes->size()) (*bytes)[offset] = static_cast<char>((*bytes)[offset] ^ flip);
    }
  }

  absl::StatusOr<std::vector<std::string>> List() override {
    if (Fault fault = Begin(); fault != Fault::kNone) return Eio("list");
    return names();
  }
  absl::StatusOr<std::string> Read(const std::string& name) override {
    if (Fault fault = Begin(); fault != Fault::kNone) return Eio("read");
    auto it = files_.find(name);
    if (it == files_.end()) return Error(absl::StatusCode::kNotFound, "read " + name + ": ENOENT");
    return it->second.bytes;
  }
  absl::Status Append(const std::string& name, std::string_view bytes) override {
    const Fault fault = Begin();
    if (fault == Fault::kNothing) return Eio("append");
    uint64_t used = 0;
    for (const auto& [other, file] : files_) used += file.bytes.size();
    const uint64_t room = capacity_ > used ? capacity_ - used : 0;
    size_t part = bytes.size();
    if (fault == Fault::kPart) part = Below(bytes.size());
    part = std::min<uint64_t>(part, room);
    if (part > 0 || room > 0) files_[name].bytes.append(bytes.substr(0, part));
    if (fault == Fault::kPart) return Eio("append");
    if (part < bytes.size()) return Error(absl::StatusCode::kResourceExhausted, "append " + name + ": ENOSPC");
    return absl::OkStatus();
  }
  absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) override {
    const Fault fault = Begin();
    if (fault == Fault::kNothing) return Eio("overwrite");
    auto it = files_.find(name);
    if (it == files_.end()) return Error(absl::StatusCode::kNotFound, "overwrite " + name + ": ENOENT");
    TRIBUTARY_CHECK(offset + bytes.size() <= it->second.bytes.size());
    const size_t part = fault == Fault::kPart ? Below(bytes.size() + 1) : bytes.size();
    it->second.bytes.replace(offset, part, bytes.substr(0, part));
    return fault == Fault::kPart ? Eio("overwrite") : absl::OkStatus();
  }
  absl::Status Sync(const std::string& name) override {
    if (Fault fault = Begin(); fault != Fault::kNone) return Eio("sync");
    auto it = files_.find(name);
    if (it == files_.end()) return Error(absl::StatusCode::kNotFound, "sync " + name + ": ENOENT");
    it->second.synced = it->second.bytes;
    it->second.name_synced = true;
    return absl::OkStatus();
  }
  absl::Status Truncate(const std::string& name, uint64_t bytes) override {
    if (Fault fault = Begin(); fault != Fault::kNone) return Eio("truncate");
    auto it = files_.find(name);
    if (it == files_.end()) return Error(absl::StatusCode::kNotFound, "truncate " + name + ": ENOENT");
    it->second.bytes.resize(std::min<uint64_t>(bytes, it->second.bytes.size()));
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& name) override {
    const Fault fault = Begin();
    // If the process was killed during the operation, the file may be removed or not. If the operation returned an
    // error, the file still exists.
    if (fault == Fault::kNone || (fault == Fault::kPart && dead_)) files_.erase(name);
    return fault == Fault::kNone ? absl::OkStatus() : Eio("remove");
  }

 private:
  struct File {
    std::string bytes;
    std::string synced;
    bool name_synced = false;
  };
  // kPart: the operation fails after a part of it was done. kNothing: it fails before anything was done.
  enum class Fault : uint8_t { kNone, kPart, kNothing };
  static constexpr size_t kSectorBytes = 512;

  uint64_t Below(uint64_t n) { return n == 0 ? 0 : std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  static absl::Status Eio(const char* operation) {
    return Error(absl::StatusCode::kInternal, std::string(operation) + ": EIO");
  }
  Fault Begin() {
    if (dead_) return Fault::kNothing;
    ++operations_;
    if (operations_ != fail_at_ && operations_ != kill_at_) return Fault::kNone;
    if (operations_ == kill_at_) dead_ = true;
    return Below(3) == 0 ? Fault::kNothing : Fault::kPart;
  }

  // Returns a possible content after a loss of power. Each sector of the synced content is old, new, or partly new,
  // independently of other sectors. Of the added bytes, the first ones exist, and zeros may follow.
  std::string Torn(const std::string& synced, const std::string& bytes) {
    if (bytes.size() < synced.size()) return Below(2) == 0 ? synced : bytes;
    std::string out = synced;
    for (size_t at = 0; at < synced.size(); at += kSectorBytes) {
      const size_t size = std::min(kSectorBytes, synced.size() - at);
      if (bytes.compare(at, size, synced, at, size) == 0) continue;
      const uint64_t choice = Below(3);
      const size_t part = choice == 0 ? 0 : choice == 1 ? size : Below(size + 1);
      out.replace(at, part, bytes, at, part);
    }
    const size_t added = bytes.size() - synced.size();
    if (added == 0) return out;
    const size_t kept = Below(4) == 0 ? added : Below(added + 1);
    out.append(bytes, synced.size(), kept);
    if (Below(4) == 0) out.append(Below(added - kept + 1), '\0');
    return out;
  }

  std::mt19937_64 random_;
  std::map<std::string, File> files_;
  uint64_t capacity_ = UINT64_MAX;
  uint64_t operations_ = 0;
  uint64_t fail_at_ = UINT64_MAX;
  uint64_t kill_at_ = UINT64_MAX;
  bool dead_ = false;
};

}  // namespace tributary::intake
