#include "kernel-collector/processes/kernel_code.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

constexpr uint64_t kPageBytes = 4096;

CodeFilePtr MakeKernelFile(const ExecutableId& id, std::string path) {
  auto file = std::make_shared<CodeFile>();
  file->id = id;
  file->path = std::move(path);
  file->state = CodeFile::State::kReady;
  return file;
}

// Takes the place of names: people see only this text, which contains the cause and the remedy. The text must not
// contain a slash, because only the last part of a path is shown.
CodeFilePtr MakeCause(std::string_view text) {
  std::string name = "[kernel] (";
  name.append(text).append(")");
  return MakeNamedCode(name, name);
}

std::string_view WhyHidden(const absl::Status& status, std::string_view kptr_restrict) {
  // 2 hides addresses from all processes; 0 and 1 hide them from processes without CAP_SYSLOG (kernel/ksyms_common.c).
  if (absl::IsPermissionDenied(status)) {
    return kptr_restrict.starts_with('2') ? "names hidden: set kernel.kptr_restrict to 1"
                                          : "names hidden: grant CAP_SYSLOG";
  }
  if (absl::IsNotFound(status)) return "names unknown: no kallsyms, or no build-id in sysfs";
  return "names unknown: kallsyms cannot be read";
}

// Sets the ends of programs. A program does not end where the next listed program begins: kallsyms does not list the
// code between them.
void SetEnds(std::vector<BpfCode> programs, std::vector<GeneratedCode>* generated) {
  std::sort(programs.begin(), programs.end(), [](const BpfCode& a, const BpfCode& b) { return a.begin < b.begin; });
  for (GeneratedCode& code : *generated) {
    auto it = std::lower_bound(programs.begin(), programs.end(), code.begin,
                               [](const BpfCode& each, uint64_t begin) { return each.begin < begin; });
    if (it == programs.end() || it->begin != code.begin || it->bytes > code.end - code.begin) continue;
    code.end = code.begin + it->bytes;
    code.end_known = true;
  }
}

Counter& Frames(Metrics& metrics, std::string_view reason) {
  return metrics.AddCounter("tributary_collector_kernel_frames_unnamed_total",
                            "Kernel frames without a function name, by reason", {{"reason", std::string(reason)}});
}

}  // namespace

KernelCode::KernelCode(Options options, Executor& executor, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      executor_(executor),
      clock_(clock),
      generated_(metrics),
      hidden_(MakeCause("names unknown: kallsyms was not read")),
      nowhere_(MakeCause("generated code of no known name")),
      unhid_at_(clock.Monotonic()),
      forgot_at_(clock.Monotonic()),
      tokens_at_(clock.Monotonic()),
      reads_(metrics.AddCounter(
          "tributary_collector_kallsyms_reads_total",
          "How often /proc/kallsyms was read to find the addresses of the kernel, modules and BPF programs")),
      hidden_frames_(Frames(metrics, "hidden")),
      nowhere_frames_(Frames(metrics, "not_listed")),
      anonymous_module_frames_(Frames(metrics, "module_without_build_id")) {}

void KernelCode::Read(const Options& options, Reading* reading) {
  reading->layout = ReadKernelLayout(options.proc_root, options.sys_root);
  if (reading->layout.ok()) {
    if (options.list_bpf) SetEnds(options.list_bpf(), &reading->layout->generated);
    return;
  }
  reading->kptr_restrict = ReadSmallFile(options.proc_root + "/sys/kernel/kptr_restrict", kPageBytes).value_or("");
}

void KernelCode::ReadNow() {
  Reading reading{.began = clock_.Monotonic()};
  Read(options_, &reading);
  Take(reading);
}

void KernelCode::Take(Reading& reading) {
  if (drain_) drain_();
  reads_.Add();
  read_at_ = reading.began;
  if (reading.layout.ok()) {
    generated_.Merge(reading.layout->generated, reading.began);
    return SetLayout(*std::move(reading.layout));
  }
  generated_.Merge({}, reading.began);
  if (layout_ != nullptr) return;  // the kernel's own address stays the same until the next boot
  CodeFilePtr cause = MakeCause(WhyHidden(reading.layout.status(), reading.kptr_restrict));
  if (cause->path == hidden_->path) return;
  LogWarning("kernel frames have no names: each shows the text \"{}\" instead cause=\"{}\"", cause->path,
             Message(reading.layout.status()));
  hidden_ = std::move(cause);
}

void KernelCode::SetLayout(KernelLayout layout) {
  if (layout_ == nullptr && reads_.value() > 1) LogInfo("kernel frames have names from now on");
  kernel_ = MakeKernelFile(layout.id, "[kernel]");
  modules_.clear();
  for (const KernelModule& module : layout.modules) {
    const std::string path = "[" + module.name + "]";
    modules_.push_back(module.id.known() ? MakeKernelFile(module.id, path)
                                         : MakeNamedCode(path + " (no build-id)", path + " (no build-id)"));
  }
  layout_ = std::make_shared<const KernelLayout>(std::move(layout));
  if (changed_) changed_();
}

void KernelCode::OnKernelCode(const KernelCodeEvent& event) {
  // The only hint in an event about the code's owner is the code's name.
  const std::string_view owner = event.is_bpf ? "bpf" : event.name.starts_with("kprobe") ? "kprobes" : "ftrace";
  const GeneratedCodeTable::Code code{event.start, event.start + event.length, owner, event.name};
  event.gone ? generated_.Remove(code, event.time) : generated_.Add(code, event.time);
}

KernelCode::Place KernelCode::Named(const CodeFilePtr& code, uint64_t offset) {
  if (!code->only_function.empty() && !names_.contains(code->id)) {
    // Evicts an arbitrary entry. Requested code was sampled a moment ago and comes back with its next sample.
    if (names_.size() >= kNamesMax) names_.erase(names_.begin());
    names_.emplace(code->id, code->only_function);
  }
  return {code.get(), offset};
}

KernelCode::Place KernelCode::Cause(const CodeFilePtr& cause, Counter& counter) {
  counter.Add();
  Place place = Named(cause, 0);
  place.is_cause = true;
  return place;
}

bool KernelCode::IsKernelText(uint64_t address) const {
  return layout_ != nullptr && address >= layout_->text_begin && address < layout_->text_end;
}

bool KernelCode::BeginsGeneratedCode(uint64_t address, MonotonicNs time) const {
  if (IsKernelText(address)) return false;
  auto found = generated_.Find(address, time);
  return found && found->offset == 0;
}

KernelCode::Place KernelCode::Find(uint64_t probe, MonotonicNs time) {
  if (IsKernelText(probe)) return Named(kernel_, probe - layout_->text_begin);
  // Generated code is searched before modules. It may lie in the gap after a module, because only a module's begin is
  // certain.
  if (auto found = generated_.Find(probe, time)) {
    return found->unsure ? Nameless(probe, time) : Named(found->file, found->offset);
  }
  if (layout_ == nullptr) return Cause(hidden_, hidden_frames_);
  const std::vector<KernelModule>& modules = layout_->modules;
  auto it = std::upper_bound(modules.begin(), modules.end(), probe,
                             [](uint64_t a, const KernelModule& m) { return a < m.base; });
  if (it != modules.begin() && probe - std::prev(it)->base < std::prev(it)->size) {
    --it;
    const CodeFilePtr& module = modules_[static_cast<size_t>(it - modules.begin())];
    return it->id.known() ? Named(module, probe - it->base) : Cause(module, anonymous_module_frames_);
  }
  return Nameless(probe, time);
}

KernelCode::Place KernelCode::Nameless(uint64_t probe, MonotonicNs time) {
  const uint64_t page = probe / kPageBytes;
  bool given_up = nameless_pages_.contains(page);
  if (!given_up && time < read_at_ && !wanted_) {
    // Kallsyms has been read after this sample, so the code is not listed.
    if (nameless_pages_.size() < kNamelessPagesMax) nameless_pages_.insert(page);
    given_up = true;
  }
  given_up |= nameless_pages_.size() >= kNamelessPagesMax;
  if (given_up) return Cause(nowhere_, nowhere_frames_);
  wanted_ = true;
  // A sample does not wait for a reading that comes only in half a minute.
  if (!reading_ && read_tokens_ == 0) return Cause(nowhere_, nowhere_frames_);
  Place place = Named(nowhere_, 0);
  place.is_cause = place.wait = true;
  return place;
}

void KernelCode::EarnReads(MonotonicNs now) {
  const int64_t earned = (now.value - tokens_at_.value) / kReadAgainNs;
  read_tokens_ = std::min(read_tokens_ + earned, kReadsAtOnce);
  tokens_at_.value += earned * kReadAgainNs;
}

void KernelCode::Tick() {
  const MonotonicNs now = clock_.Monotonic();
  generated_.DropOld(now);
  if (layout_ == nullptr && now.value - unhid_at_.value >= kUnhideNs) {
    unhid_at_ = now;
    wanted_ = true;
  }
  if (now.value - forgot_at_.value >= kForgetNs) {
    forgot_at_ = now;
    nameless_pages_.clear();
  }
  EarnReads(now);
  if (!wanted_ || reading_ || read_tokens_ == 0) return;
  --read_tokens_;
  auto reading = std::make_shared<Reading>();
  reading->began = now;
  reading_ =
      executor_.Submit([options = options_, reading] { Read(options, reading.get()); }, scope_.Wrap([this, reading] {
        reading_ = false;
        Take(*reading);
      }));
  if (reading_) wanted_ = false;
}

std::string KernelCode::NameOf(const ExecutableId& id) const {
  auto it = names_.find(id);
  return it == names_.end() ? std::string() : it->second;
}

}  // namespace tributary
