package config

import "github.com/goccy/go-yaml/ast"

// String names the kind as an error does.
func (k kind) String() string {
	switch k {
	case section, object, dict:
		return "a map"
	case integer:
		return "a whole number"
	case boolean:
		return "true or false"
	case duration:
		return "a duration"
	case list:
		return "a list"
	}
	return "text"
}

func nodeName(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a map"
	case ast.SequenceType:
		return "a list"
	case ast.NullType:
		return "nothing"
	case ast.AnchorType, ast.AliasType, ast.TagType:
		return "an anchor, alias or tag, which are not supported,"
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.BoolType:
		return "a boolean"
	}
	return "a number"
}
