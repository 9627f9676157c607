#include "reducer/export/file_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "otlp/json.h"
#include "otlp/request_parts.h"
#include "reducer/export/file_name.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<FileSender>> FileSender::Open(FileOptions options, const Clock& clock,
                                                             Metrics& metrics) {
  const bool is_folded = options.format == FileOptions::Format::kFolded;
  ASSIGN_OR_RETURN(std::unique_ptr<RotatedFiles> files, RotatedFiles::Open({.directory = options.directory,
                                                                            .extension = is_folded ? "folded" : "jsonl",
                                                                            .rotate_bytes = options.rotate_bytes,
                                                                            .rotate_after_ns = options.rotate_after_ns,
                                                                            .keep = options.keep},
                                                                           clock, metrics));
  return std::unique_ptr<FileSender>(new FileSender(std::move(options), std::move(files), clock, metrics));
}

FileSender::FileSender(FileOptions options, std::unique_ptr<RotatedFiles> files, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      files_(std::move(files)),
      clock_(clock),
      redirected_samples_(
          metrics.AddCounter("tributary_export_redirected_samples_total",
                             "Samples that were written to the files `other`, because too many names have files, or "
                             "the name is too long.",
                             {{"exporter", "file"}})),
      cut_stacks_(metrics.AddCounter("tributary_export_cut_stacks_total",
                                     "Folded stacks that were written without their outermost frames, because the line "
                                     "would be too long.",
                                     {{"exporter", "file"}})) {}

FileSender::~FileSender() {
  if (plan_) files_->Undo();
  files_->FinishAll(kFinishNs);
}

otlp::SendResult FileSender::Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                                  int64_t timeout_ns) {
  const int64_t deadline_ns = clock_.Monotonic().value + timeout_ns;
  otlp::SendResult result;
  // Half of the time is left for the lines of the request.
  const int64_t sweep_end_ns = deadline_ns - timeout_ns / 2;
  result.status =
      files_->Sweep([this, sweep_end_ns] { return cancelled_ || clock_.Monotonic().value >= sweep_end_ns; });
  if (plan_ && plan_->identity != identity) {
    files_->Undo();
    plan_.reset();
  }
  if (!plan_) {
    plan_ = MakePlan(request);
    plan_->identity = identity;
    files_->Begin();
  }
  otlp::FoldedLines lines(request);
  while (result.status.ok() && plan_->part < plan_->parts.size()) {
    if (cancelled_) {
      result.status = absl::CancelledError("the export is stopping");
    } else if (clock_.Monotonic().value >= deadline_ns) {
      result.status = absl::DeadlineExceededError("the disk is too slow");
    } else {
      result.status = WriteNext(request, lines);
    }
  }
  result.may_retry = !result.status.ok();
  if (!result.status.ok()) return result;
  result.left_out_samples = plan_->left_out_samples;
  if (plan_->left_out_samples > 0) {
    result.message = fmt::format("there are too many sample types for the files `other`: {} samples are not written",
                                 plan_->left_out_samples);
  }
  plan_.reset();
  return result;
}

FileSender::Plan FileSender::MakePlan(const otlp::ProfilesRequest& request) const {
  Plan plan;
  for (otlp::RequestPart& of : otlp::PartsOf(request, options_.attribute)) {
    const std::string name = FileNameOf(of.text);
    std::vector<otlp::FoldedStacks> folded = otlp::FoldStacks(request, of.resources);
    if (options_.format == FileOptions::Format::kOtlpJson) {
      uint64_t samples = 0;
      for (const otlp::FoldedStacks& stacks : folded) samples += stacks.samples;
      plan.parts.push_back(
          {.name = name, .type = "", .resources = std::move(of.resources), .stacks = {}, .samples = samples});
      continue;
    }
    for (otlp::FoldedStacks& stacks : folded) {
      const uint64_t samples = stacks.samples;
      plan.parts.push_back({.name = name,
                            .type = FileTypeOf(stacks.type, stacks.unit),
                            .resources = {},
                            .stacks = std::move(stacks),
                            .samples = samples});
    }
  }
  return plan;
}

// Sets the stem of the next part. Returns false if no file can have it.
bool FileSender::ChooseStem() {
  const Part& part = plan_->parts[plan_->part];
  const auto stem_of = [&](std::string_view name) {
    return part.type.empty() ? std::string(name) : fmt::format("{}.{}", name, part.type);
  };
  plan_->stem = stem_of(part.name);
  if (part.name != kOtherName && files_->Admit(plan_->stem, options_.series_max)) return true;
  plan_->stem = stem_of(kOtherName);
  if (!files_->Admit(plan_->stem, options_.series_max + kOtherSeriesMax)) return false;
  redirected_samples_.Add(part.samples);
  if (uint64_t held = 0; redirect_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning(
        "samples are written to the files `other`, because too many names have files, or the name is too long "
        "directory={} samples={} suppressed={}",
        options_.directory, part.samples, held);
  }
  return true;
}

// Writes one step of the next part.
absl::Status FileSender::WriteNext(const otlp::ProfilesRequest& request, otlp::FoldedLines& lines) {
  const Part& part = plan_->parts[plan_->part];
  bool is_done = true;
  if (plan_->stem.empty() && !ChooseStem()) {
    plan_->left_out_samples += part.samples;
  } else if (options_.format == FileOptions::Format::kOtlpJson) {
    RETURN_IF_ERROR(WriteJson(part, request));
  } else {
    RETURN_IF_ERROR(WriteFolded(part, lines));
    is_done = plan_->entry == part.stacks.entries.size();
  }
  if (is_done) {
    ++plan_->part;
    plan_->entry = 0;
    plan_->stem.clear();
  }
  return absl::OkStatus();
}

absl::Status FileSender::WriteFolded(const Part& part, otlp::FoldedLines& lines) {
  const auto bytes_max = static_cast<size_t>(std::min<int64_t>(kWriteBytes, options_.rotate_bytes));
  const auto& entries = part.stacks.entries;
  std::string text, line;
  size_t entry = plan_->entry;
  uint64_t cut = 0;
  for (; entry < entries.size(); ++entry) {
    line.clear();
    const bool is_whole = lines.Append(entries[entry], &line);
    if (!text.empty() && text.size() + line.size() > bytes_max) break;
    text += line;
    cut += is_whole ? 0 : 1;
  }
  RETURN_IF_ERROR(files_->Append(plan_->stem, text));
  cut_stacks_.Add(cut);
  plan_->entry = entry;
  return absl::OkStatus();
}

// Writes one line, as the Collector's file exporter does.
absl::Status FileSender::WriteJson(const Part& part, const otlp::ProfilesRequest& request) {
  const bool is_all = part.resources.size() == static_cast<size_t>(request.resource_profiles_size());
  const otlp::ProfilesRequestPtr copy = is_all ? nullptr : otlp::CopyPart(request, part.resources);
  return files_->Append(plan_->stem, otlp::ToJson(is_all ? request : *copy) + '\n');
}

}  // namespace tributary
