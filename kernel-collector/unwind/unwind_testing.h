#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/unwind/unwind_compiler.h"

namespace tributary {

// Runs one job per call of RunOne.
class StepExecutor : public Executor {
 public:
  bool Submit(std::function<void()> work, std::function<void()> done) override {
    jobs_.emplace_back(std::move(work), std::move(done));
    return true;
  }
  bool RunOne() {
    if (jobs_.empty()) return false;
    auto [work, done] = std::move(jobs_.front());
    jobs_.pop_front();
    work();
    done();
    return true;
  }

 private:
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs_;
};

// Returns a CodeFile with the build-id `id` and `bytes` bytes of code at `address`.
inline CodeFilePtr MakeCodeFile(std::string_view id, uint64_t address, uint64_t bytes) {
  auto file = std::make_shared<CodeFile>();
  file->key.build_id = file->id = BuildId(id);
  file->state = CodeFile::State::kReady;
  file->segments = {{address % 0x1000, bytes, address, bytes, true}};
  return file;
}

// Returns FakeCompiler's rule at an address. The rule changes every kRowBytes bytes, and differs between files.
constexpr uint64_t kRowBytes = 32;
inline uint64_t FakeRule(const ExecutableId& id, uint64_t address) {
  uint64_t seed = static_cast<uint64_t>(id.view().front()) + static_cast<uint64_t>(id.view().back()) * 7;
  return TRIB_RULE_SP | ((address / kRowBytes * 31 + seed) % 997 + 1) << 8;
}

class FakeCompiler : public UnwindCompiler {
 public:
  Result Compile(const Request& request) override {
    requests.push_back(request);
    Result result;
    result.cpu_ns = cpu_ns;
    result.kind = kind;
    if (!status.ok() || kind == UnwindSource::Kind::kNone) {
      result.status = status;
      return result;
    }
    result.starts = starts;
    for (uint64_t at = request.range.begin; at < request.range.end; at += row_bytes) {
      result.rows.push_back(
          {static_cast<uint32_t>(at - request.range.begin), rule ? rule(at) : FakeRule(request.id, at)});
    }
    return result;
  }

  std::vector<Request> requests;
  absl::Status status;
  UnwindSource::Kind kind = UnwindSource::Kind::kEhFrame;
  std::vector<AddressRange> starts;
  int64_t cpu_ns = 0;
  uint64_t row_bytes = kRowBytes;
  std::function<uint64_t(uint64_t address)> rule;  // instead of FakeRule
};

}  // namespace tributary
