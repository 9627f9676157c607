#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

struct Row {
  std::string name;
  std::vector<double> values;
};

std::map<std::string, double> Sums(const std::vector<Row>& rows) {
  std::unordered_map<std::string, std::unique_ptr<double>> sums;
  for (const Row& row : rows) {
    auto& sum = sums[row.name];
    if (!sum) sum = std::make_unique<double>(0);
    *sum += std::accumulate(row.values.begin(), row.values.end(), 0.0);
  }
  std::map<std::string, double> out;
  for (auto& [name, sum] : sums) out[name] = *sum;
  return out;
}

int main() {
  std::vector<Row> rows{{"a", {1, 2}}, {"b", {3}}};
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.values.size() < b.values.size(); });
  return static_cast<int>(Sums(rows).size());
}
