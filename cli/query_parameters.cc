#include "cli/query_parameters.h"

namespace tributary::cli {

HttpClient::Parameters QueryParameters(const QueryOptions& query) {
  HttpClient::Parameters parameters = SelectionParameters(query);
  parameters.emplace_back("type", query.type);
  return parameters;
}

HttpClient::Parameters SelectionParameters(const QueryOptions& query) {
  HttpClient::Parameters parameters = {{"from", query.from}, {"to", query.to}};
  if (!query.query.empty()) parameters.emplace_back("query", query.query);
  return parameters;
}

}  // namespace tributary::cli
