#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/probes/bpf_code.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/generated_code_table.h"
#include "kernel-collector/processes/worker.h"
#include "symbols/kernel_layout.h"

namespace tributary {

// Finds the code at a kernel address: the kernel itself, a module, or code that the kernel generated. If no name is
// known for the code, returns a CodeFile whose name says why. Reads /proc/kallsyms at start, and again when an address
// is in no known code, when events were lost, and while kallsyms could not be read. Up to kReadsAtOnce reads may follow
// each other directly. On average, there is at most one read per kReadAgainNs. Loop thread only; after the start,
// kallsyms is read on `executor`.
class KernelCode {
 public:
  static constexpr int64_t kReadAgainNs = 30 * kNsPerSecond;
  static constexpr int64_t kReadsAtOnce = 4;
  static constexpr int64_t kUnhideNs = 60 * kNsPerSecond;  // retry period while kallsyms cannot be read
  // Kallsyms never lists some code, for example the filters of classic BPF. A node with containers has hundreds of such
  // filters. So the pages of code that kallsyms does not list are stored, and cause no more reads. Every kForgetNs, all
  // stored pages are dropped.
  static constexpr int64_t kForgetNs = 600 * kNsPerSecond;
  static constexpr size_t kNamelessPagesMax = 4'096;
  static constexpr size_t kNamesMax = 8'192;

  struct Options {
    std::string proc_root = "/proc", sys_root = "/sys";
    std::function<std::vector<BpfCode>()>
        list_bpf;  // lists the BPF programs with their lengths; called on the thread that reads kallsyms; may be empty
  };
  KernelCode(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // `drain` is called when kallsyms was read, before the result is merged. It must pass to this object all events that
  // have arrived.
  void SetDrain(std::function<void()> drain) { drain_ = std::move(drain); }
  // `changed` is called when layout() returns a new object.
  void SetChanged(std::function<void()> changed) { changed_ = std::move(changed); }

  // Reads kallsyms on the calling thread. Call it only at start.
  void ReadNow();
  void OnKernelCode(const KernelCodeEvent& event);
  void OnLost() { generated_.NoteLoss(), wanted_ = true; }
  void Tick();

  struct Place {
    CodeFile* file = nullptr;  // never null
    uint64_t offset = 0;
    bool is_cause = false;  // `file` stands for the cause of the missing name; `offset` is 0
    bool wait = false;      // a pending reading may give a better answer
  };
  // Returns the code at `probe`, an address within the instruction that ran at `time`.
  Place Find(uint64_t probe, MonotonicNs time);
  // Returns true if the first instruction of generated code was at `address` at `time`.
  bool BeginsGeneratedCode(uint64_t address, MonotonicNs time) const;

  // Null until kallsyms was read successfully.
  const std::shared_ptr<const KernelLayout>& layout() const { return layout_; }
  // Returns the name of sampled code that is in no file; "" for other code. Code that is in no file has only one name.
  std::string NameOf(const ExecutableId& id) const;

 private:
  struct Reading {
    MonotonicNs began;
    absl::StatusOr<KernelLayout> layout = absl::UnknownError("not read");
    std::string kptr_restrict;
  };
  static void Read(const Options& options, Reading* reading);
  bool IsKernelText(uint64_t address) const;
  void Take(Reading& reading);
  void SetLayout(KernelLayout layout);
  void EarnReads(MonotonicNs now);
  Place Named(const CodeFilePtr& code, uint64_t offset);
  Place Cause(const CodeFilePtr& cause, Counter& counter);
  Place Nameless(uint64_t probe, MonotonicNs time);

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  std::function<void()> drain_, changed_;

  std::shared_ptr<const KernelLayout> layout_;
  CodeFilePtr kernel_;
  std::vector<CodeFilePtr> modules_;  // parallel to layout_->modules
  GeneratedCodeTable generated_;
  CodeFilePtr hidden_;   // the cause, while there is no layout
  CodeFilePtr nowhere_;  // for code that kallsyms does not list
  absl::flat_hash_map<ExecutableId, std::string> names_;
  absl::flat_hash_set<uint64_t> nameless_pages_;  // not found in kallsyms

  bool wanted_ = false, reading_ = false;
  MonotonicNs read_at_, unhid_at_, forgot_at_;
  int64_t read_tokens_ = kReadsAtOnce;
  MonotonicNs tokens_at_;
  Counter &reads_, &hidden_frames_, &nowhere_frames_, &anonymous_module_frames_;
  CallbackScope scope_;
};

}  // namespace tributary
