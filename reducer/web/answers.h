#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reducer/query/query_engine.h"
#include "reducer/symbolizer/symbol_importer.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/web/source_texts.h"

namespace tributary {

// These functions return the JSON bodies that docs/api.md describes. The result depends only on the arguments.

std::string ErrorJson(std::string_view message);
// `type` is the sample type of the values in the answer.
std::string FlameGraphJson(const QueryRequest& request, const SampleTypeInfo& type, const FlameGraph& graph);
std::string TopJson(const SampleTypeInfo& type, const std::vector<TopFunction>& functions, uint64_t total_value,
                    uint64_t total_count);
std::string TimelineJson(const QueryRequest& request, const SampleTypeInfo& type, const Timeline& timeline);
std::string TypesJson(const std::set<SampleTypeInfo>& types);
std::string LabelsJson(const std::vector<std::string>& labels);
std::string SeriesJson(const SampleTypeInfo& type, const SeriesList& series);
std::string SymbolsJson(const SampleTypeInfo& type, const ExecutableList& executables,
                        const std::vector<SymbolNotices::Notice>& notices);
std::string LinesJson(const SampleTypeInfo& type, const FunctionLinesRequest& function, const FunctionLines& lines,
                      const SourceTexts& sources);
std::string UploadJson(const SymbolImporter::Imported& imported);
std::string RemovedTableJson(const ExecutableId& id);
std::string StackHealthJson(const SampleTypeInfo& type, const StackHealth& health);

}  // namespace tributary
