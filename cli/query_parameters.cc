#include "cli/query_parameters.h"

namespace tributary::cli {

HttpClient::Parameters QueryParameters(const QueryOptions& query) {
  HttpClient::Parameters parameters = {{"from", query.from}, {"to", query.to}, {"type", query.type}};
  if (!query.query.empty()) parameters.emplace_back("query", query.query);
  return parameters;
}

}  // namespace tributary::cli
