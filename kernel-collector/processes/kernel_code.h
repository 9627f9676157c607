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

// What is at a kernel address: the kernel itself, a module, code that the kernel generated; or, in place of a name, why
// there is none. Kallsyms is read at start, and again where an address is met that is in nothing known, or events were
// lost: a few times at once, once in kReadAgainNs for long. Loop thread only; reads on `executor`.
class KernelCode {
 public:
  static constexpr int64_t kReadAgainNs = 30 * kNsPerSecond;
  static constexpr int64_t kReadsAtOnce = 4;
  static constexpr int64_t kUnhideNs = 60 * kNsPerSecond;  // kallsyms that cannot be read is tried again
  // Code that is not listed stays so: classic BPF's filters, of which a node with containers has hundreds.
  static constexpr int64_t kForgetNs = 600 * kNsPerSecond;
  static constexpr size_t kNamelessPagesMax = 4'096;
  static constexpr size_t kNamesMax = 8'192;

  struct Options {
    std::string proc_root = "/proc", sys_root = "/sys";
    std::function<std::vector<BpfCode>()>
        list_bpf;  // how long programs are; called where kallsyms is read. Empty: none
  };
  KernelCode(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // Called before what was read meets what events told: feeds all events there are.
  void SetDrain(std::function<void()> drain) { drain_ = std::move(drain); }
  // Called when layout() has changed.
  void SetChanged(std::function<void()> changed) { changed_ = std::move(changed); }

  // At start; waits for it.
  void ReadNow();
  void OnKernelCode(const KernelCodeEvent& event);
  void OnLost() { generated_.NoteLoss(), wanted_ = true; }
  void Tick();

  struct Place {
    CodeFile* file = nullptr;  // never null
    uint64_t offset = 0;
    bool is_cause = false;  // no place, but why it has no name: `offset` is 0
    bool wait = false;      // a reading is wanted that may tell better
  };
  // `probe`: an address within the instruction that ran then.
  Place Find(uint64_t probe, MonotonicNs time);
  // Whether the first instruction of generated code was there then.
  bool BeginsGeneratedCode(uint64_t address, MonotonicNs time) const;

  // Null until it could be read.
  const std::shared_ptr<const KernelLayout>& layout() const { return layout_; }
  // The one function of code without a file that samples were in; "": of none.
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
  CodeFilePtr hidden_;   // while there is no layout: why
  CodeFilePtr nowhere_;  // of code that kallsyms does not list
  absl::flat_hash_map<ExecutableId, std::string> names_;
  absl::flat_hash_set<uint64_t> nameless_pages_;  // looked for in kallsyms in vain

  bool wanted_ = false, reading_ = false;
  MonotonicNs read_at_, unhid_at_, forgot_at_;
  int64_t read_tokens_ = kReadsAtOnce;
  MonotonicNs tokens_at_;
  Counter &reads_, &hidden_frames_, &nowhere_frames_, &anonymous_module_frames_;
  CallbackScope scope_;
};

}  // namespace tributary
