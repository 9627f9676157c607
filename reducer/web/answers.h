#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/sample_types.h"
#include "reducer/query/query_engine.h"
#include "reducer/symbolizer/symbol_importer.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/web/source_texts.h"

namespace tributary {

// These functions return the JSON bodies that docs/api.md describes. The result depends only on the arguments.

std::string ErrorJson(std::string_view message);
// What every answer with values says about them.
struct Measured {
  SampleTypeInfo type;
  // The answer, or a part of it (docs/api.md), has no samples before this time, because they have expired. nullopt: it
  // has the samples of the whole range.
  std::optional<UnixNs> covered_from;
};
// The answers that may be large return DeadlineExceeded if the request is cancelled.
absl::StatusOr<std::string> FlameGraphJson(const QueryRequest& request, const Measured& measured,
                                           const FlameGraph& graph);
absl::StatusOr<std::string> TopJson(const QueryRequest& request, const Measured& measured,
                                    const std::vector<TopFunction>& functions, uint64_t total_value,
                                    uint64_t total_count);
std::string TimelineJson(const QueryRequest& request, const Measured& measured, const Timeline& timeline);
std::string TypesJson(const std::set<SampleTypeInfo>& types);
std::string LabelsJson(const std::vector<std::string>& labels);
std::string SeriesJson(const Measured& measured, const SeriesList& series);
absl::StatusOr<std::string> SymbolsJson(const QueryRequest& request, const Measured& measured,
                                        const ExecutableList& executables,
                                        const std::vector<SymbolNotices::Notice>& notices);
std::string LinesJson(const Measured& measured, const FunctionLinesRequest& function, const FunctionLines& lines,
                      const SourceTexts& sources);
std::string UploadJson(const SymbolImporter::Imported& imported);
std::string RemovedTableJson(const ExecutableId& id);
std::string StackHealthJson(const Measured& measured, const StackHealth& health);

}  // namespace tributary
