/* A list of cases: CSV with a header row; lines that begin with # are skipped. */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

typedef std::map<std::string, std::string> Case;

struct Table {
  std::vector<std::string> columns;
  std::vector<Case> cases;
};

inline std::vector<std::string> split(const std::string &line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

inline Table read_cases(const char *path) {
  Table table;
  std::ifstream file(path);
  if (!file) {
    fprintf(stderr, "%s: cannot be read\n", path);
    exit(2);
  }
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    number++;
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells = split(line);
    if (table.columns.empty()) {
      table.columns = cells;
      continue;
    }
    if (cells.size() != table.columns.size()) {
      fprintf(stderr, "%s:%d: %zu cells, the header has %zu\n", path, number, cells.size(), table.columns.size());
      exit(2);
    }
    Case c;
    for (size_t i = 0; i < cells.size(); i++) c[table.columns[i]] = cells[i];
    table.cases.push_back(c);
  }
  return table;
}

/* "37:512x3" is 37, 512, 512, 512. */
inline std::vector<int> numbers(const std::string &text) {
  std::vector<int> all;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) {
    size_t times = part.find('x');
    int count = times == std::string::npos ? 1 : atoi(part.c_str() + times + 1);
    all.insert(all.end(), (size_t)count, atoi(part.c_str()));
  }
  return all;
}

inline int number(const Case &c, const char *key) {
  auto found = c.find(key);
  if (found == c.end()) {
    fprintf(stderr, "case without column %s\n", key);
    exit(2);
  }
  return atoi(found->second.c_str());
}
