#include "admin/query.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstddef>
#include <utility>

#include "http/syntax.h"

namespace stint::admin {
namespace {

namespace json = boost::json;

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = http::hex_value(text[i + 1]);
    const int low = http::hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::unexpected<std::string> unknown(Parameters::Known known) {
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return std::unexpected(names.empty()
                             ? "the request takes no parameters"
                             : "the request has an unknown parameter; known are " + names);
}

bool contains(Parameters::Known known, std::string_view name) {
  return std::ranges::find(known, name) != known.end();
}

}  // namespace

Parameters::OrWhyNot<Parameters> Parameters::of_query(std::string_view query, Known known) {
  Parameters parameters;
  if (query.starts_with('?')) query.remove_prefix(1);
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = decoded(part.substr(0, equals));
    auto value = decoded(part.substr(std::min(equals + 1, part.size())));
    if (!name || !value) return std::unexpected<std::string>("the query has a % that is no escape");
    if (!contains(known, *name)) return unknown(known);
    const auto [place, fresh] = parameters.values_.emplace(std::move(*name), std::move(*value));
    if (!fresh) return std::unexpected("the query has " + place->first + " twice");
  }
  return parameters;
}

Parameters::OrWhyNot<Parameters> Parameters::of_json(std::string_view body, Known known) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), error);
  if (error || !value.is_object())
    return std::unexpected<std::string>("the body is no JSON object");
  Parameters parameters;
  for (const auto& member : value.get_object()) {
    const std::string name(member.key());
    if (!contains(known, name)) return unknown(known);
    if (!member.value().is_string()) return std::unexpected(name + " must be a text");
    const json::string& text = member.value().get_string();
    parameters.values_.emplace(name, std::string(text.data(), text.size()));
  }
  return parameters;
}

std::optional<std::string_view> Parameters::get(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

}  // namespace stint::admin
