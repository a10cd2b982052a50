//! Encodings are chosen as documented; footers survive a round trip and refuse damage.

use super::encode::Encoded;
use super::*;
use crate::checksum::Place;
use crate::schema::RowOrder;
use crate::value_file::HeapWord;
use crate::{Column, ColumnSlice, DataType, FieldId, TableId, Value, ValueReference, hash};

fn column(data_type: DataType, values: impl IntoIterator<Item = Value>) -> Column {
    let mut column = Column::empty(data_type);
    for value in values {
        column.push(value.as_ref().coerce(data_type).unwrap()).unwrap();
    }
    column
}

#[test]
fn encodings_follow_the_values() {
    let encode = |c: &Column| match encode_column(FieldId(1), c).values {
        Encoded::Constant(_) => "constant",
        Encoded::Plain(_) => "plain",
        Encoded::Narrowed { width: 1, .. } => "narrowed 1",
        Encoded::Narrowed { width: 2, .. } => "narrowed 2",
        Encoded::Narrowed { .. } => "narrowed 4",
        Encoded::Dictionary { .. } => "dictionary",
        Encoded::Variable { .. } => "variable",
        Encoded::FixedWidth { .. } => "fixed width",
        Encoded::Scattered { .. } => "scattered",
        _ => "packed",
    };
    let ints = |f: fn(i64) -> i64| column(DataType::I64, (0..1000).map(|i| Value::Int(f(i))));
    assert_eq!(encode(&ints(|_| 7)), "constant");
    assert_eq!(encode(&ints(|i| i % 200 - 100)), "narrowed 1");
    assert_eq!(encode(&ints(|i| i - 500)), "narrowed 2");
    assert_eq!(encode(&ints(|i| i * 100_000)), "narrowed 4");
    assert_eq!(encode(&ints(|i| i64::MIN + i * (1 << 50))), "plain");
    let wide = DataType::Decimal { precision: 30, scale: 2 };
    let decimals = |f: fn(i128) -> i128| {
        let decimal = |i| Value::Decimal(crate::Decimal::new(f(i), 2).unwrap());
        column(wide, (0..1000).map(decimal))
    };
    assert_eq!(encode(&decimals(|i| i % 200 - 100)), "narrowed 1");
    assert_eq!(encode(&decimals(|i| i64::MIN as i128 + i)), "narrowed 2");
    assert_eq!(encode(&decimals(|i| i * 100_000)), "narrowed 4");
    assert_eq!(encode(&decimals(|i| i64::MAX as i128 + i)), "plain");
    assert_eq!(encode(&decimals(|i| i64::MIN as i128 - i)), "plain");
    assert_eq!(encode(&decimals(|i| i * (1 << 33))), "plain");
    let texts = |f: fn(i64) -> String| column(DataType::Text, (0..1000).map(|i| f(i).into()));
    assert_eq!(encode(&texts(|i| format!("{}", i % 5))), "dictionary");
    assert_eq!(encode(&texts(|i| format!("{i:08}"))), "fixed width");
    assert_eq!(encode(&texts(|i| format!("{i}"))), "variable");
    assert_eq!(encode(&column(DataType::Text, (0..9).map(|_| Value::Null))), "constant");
}

#[test]
fn negative_zero_is_not_folded_into_a_constant() {
    let values = column(DataType::F64, [Value::Float(0.0), Value::Float(-0.0)]);
    assert!(matches!(encode_column(FieldId(1), &values).values, Encoded::Plain(_)));
}

#[test]
fn zones_bound_values_and_count_nulls() {
    let values = (0..9000i64).map(|i| if i % 2 == 0 { Value::Null } else { Value::Int(i) });
    let zones = ZoneEntry::of_column(&column(DataType::I64, values));
    assert_eq!(zones.len(), 2);
    assert_eq!((&zones[0].least, &zones[0].greatest), (&Value::Int(1), &Some(Value::Int(8191))));
    assert_eq!((zones[0].null_count, zones[1].null_count), (4096, 404));
    let long = "é".repeat(40);
    let zones = ZoneEntry::of_column(&column(DataType::Text, [Value::Text(long.clone())]));
    assert!(zones[0].least <= Value::Text(long) && zones[0].greatest.is_none());
}

#[test]
fn footer_and_trailer_survive_a_round_trip_and_refuse_damage() {
    let values = column(DataType::Text, (0..100).map(|i| Value::Text(format!("{i}"))));
    let encoded = encode_column(FieldId(3), &values);
    let footer = Footer {
        table: TableId(7),
        segment: 9,
        schema_version: 1,
        rows: 100,
        order: RowOrder::Arrival,
        packing: Packing::None,
        row_ids: RowIds::Dense { first: 5 },
        dead: None,
        columns: vec![ColumnLayout {
            field: encoded.field,
            data_type: encoded.data_type,
            encoding: Encoding::Variable {
                offsets: Extent { offset: 64, len: 404 },
                heap: Extent { offset: 512, len: 190 },
            },
            validity: None,
            zones: encoded.zones,
            sketch: None,
        }],
        value_files: vec![ValueFileUse { file: 4, bytes: 70_144 }],
        block_checksums: vec![1],
    };
    let bytes = footer.encode();
    assert_eq!(Footer::decode(&bytes, 1024, VERSION).unwrap(), footer);
    assert!(Footer::decode(&bytes, 600, VERSION).is_err(), "an extent past the data is refused");
    for cut in 0..bytes.len() {
        assert!(Footer::decode(&bytes[..cut], 1024, VERSION).is_err());
    }
    let place = Place { database: 1, file: 2, position: 3 };
    let trailer =
        Trailer { version: VERSION, footer_offset: 1024, footer_len: 99, footer_checksum: 5 };
    let bytes = trailer.encode(place);
    assert_eq!(bytes.len(), TRAILER_BYTES);
    assert_eq!(Trailer::decode(&bytes, place).unwrap(), trailer);
    assert!(Trailer::decode(&bytes, Place { position: 4, ..place }).is_err());
}

#[test]
fn footers_of_the_version_before_are_read_and_have_nothing_packed() {
    let footer = |packing, encoding| Footer {
        table: TableId(7),
        segment: 9,
        schema_version: 1,
        rows: 100,
        order: RowOrder::Time,
        packing,
        row_ids: RowIds::Dense { first: 5 },
        dead: None,
        columns: vec![ColumnLayout {
            field: FieldId(3),
            data_type: DataType::I64,
            encoding,
            validity: None,
            zones: Vec::new(),
            sketch: None,
        }],
        value_files: Vec::new(),
        block_checksums: vec![1],
    };
    // Behind table, segment, schema version, rows and order.
    let before = |footer: &Footer| [&footer.encode()[..21], &footer.encode()[22..]].concat();
    let plain = Encoding::Plain { values: Extent { offset: 64, len: 800 } };
    let old = before(&footer(Packing::Heaps, plain.clone()));
    assert_eq!(Footer::decode(&old, 1024, 7).unwrap(), footer(Packing::None, plain));
    let directory = Extent { offset: 64, len: 16 };
    let words = Extent { offset: 128, len: 256 };
    let numbers = PackedExtent { directory, words };
    let packed = footer(Packing::Numbers, Encoding::Packed { base: 5, span: 9, numbers });
    assert_eq!(Footer::decode(&packed.encode(), 1024, VERSION).unwrap(), packed);
    let refused = Footer::decode(&before(&packed), 1024, 7).unwrap_err().to_string();
    assert!(refused.contains("field 3 is packed in version 7"), "{refused}");
    for words in [Extent { offset: 128, len: 250 }, Extent { offset: 128, len: 2_048 }] {
        let numbers = PackedExtent { directory, words };
        let wrong = footer(Packing::Numbers, Encoding::Packed { base: 5, span: 9, numbers });
        assert!(Footer::decode(&wrong.encode(), 1024, VERSION).is_err());
    }
}

#[test]
fn row_ids_are_dense_only_when_they_rise_by_one() {
    assert!(encode_row_ids(&[5, 6, 7]).is_none());
    assert!(encode_row_ids(&[5, 5, 7]).is_some(), "two versions of a row");
    assert!(matches!(encode_row_ids(&[1, 1 << 40]), Some((8, _))));
}

#[test]
fn bounds_are_those_of_the_values_whichever_way_they_are_found() {
    let rows = 3 * ZONE_ROWS / 2;
    // Dictionaries, numbers and floats each have their own way; NULLs are of no account.
    let values = |i: usize| -> [Value; 5] {
        let (small, sign) = (i * 7_919 % 1_000, if i.is_multiple_of(3) { -1.0 } else { 1.0 });
        [
            Value::Text(format!("value {:04}", small % 50)),
            Value::Int(i64::try_from(small).unwrap() - 500),
            Value::Float(sign * f64::from(u32::try_from(small).unwrap())),
            Value::Float(if i == 77 { f64::NAN } else { sign }),
            Value::Text(format!("{i:08}")),
        ]
    };
    let types =
        [DataType::Text, DataType::I32, DataType::F64, DataType::F64, DataType::Text].into_iter();
    for (position, data_type) in types.enumerate() {
        let value = |i: usize| {
            let [a, b, c, d, e] = values(i);
            let value = [a, b, c, d, e].into_iter().nth(position).unwrap();
            if i % 11 == 5 { Value::Null } else { value }
        };
        let column = column(data_type, (0..rows).map(value));
        let encoded = encode_column(FieldId(1), &column);
        for (zone, entry) in encoded.zones.iter().enumerate() {
            let in_zone = (zone * ZONE_ROWS..rows.min((zone + 1) * ZONE_ROWS)).map(value);
            let (nulls, values): (Vec<_>, Vec<_>) = in_zone.partition(Value::is_null);
            assert_eq!(Some(&entry.least), values.iter().min(), "column {position}");
            assert_eq!(entry.greatest.as_ref(), values.iter().max(), "column {position}");
            assert_eq!(entry.null_count as usize, nulls.len());
        }
    }
}

#[test]
fn long_values_are_left_out_of_heap_and_bounds() {
    let texts = (0..9000).map(|i| Value::Text(format!("{i}")));
    let values = column(DataType::Text, texts);
    let reference = ValueReference::new(1, 2, 512, b"value");
    let encoded = encode_long_column(FieldId(3), &values, &[(8500, reference)]).unwrap();
    let Encoded::Scattered { words, heap, long } = &encoded.values else { panic!("{encoded:?}") };
    let Buffer::U64(words) = words else { panic!("{words:?}") };
    assert_eq!(HeapWord::of(words[8500]), HeapWord::Long { index: 0 });
    for (row, word) in words.iter().enumerate().filter(|(row, _)| *row != 8500) {
        let HeapWord::Near { position, len } = HeapWord::of(*word) else { panic!("row {row}") };
        let (position, len) = (usize::try_from(position).unwrap(), usize::try_from(len).unwrap());
        let bytes = &heap.as_bytes()[position..][..len];
        assert_eq!(bytes, format!("{row}").as_bytes());
    }
    assert_eq!(long.as_bytes().len(), 32);
    let bounds = |zone: &ZoneEntry| (zone.least.clone(), zone.greatest.clone());
    assert_eq!(bounds(&encoded.zones[0]), ("0".into(), Some("999".into())));
    assert_eq!(bounds(&encoded.zones[1]), ("".into(), None));
}

#[test]
fn rows_that_are_not_there_have_no_other_order() {
    let numbers = column(DataType::I64, (0..3).map(Value::Int));
    let of = |order: &[u32]| Reordered::new(&ColumnSlice::from(&numbers), order, 100).map(drop);
    assert_eq!((of(&[2, 0, 1]), of(&[])), (Ok(()), Ok(())));
    assert!(of(&[0, 3]).unwrap_err().to_string().contains("row 3 of 3"));
}

#[test]
fn rows_of_two_columns_lie_one_after_another() {
    let text = |texts: &[&str]| column(DataType::Text, texts.iter().map(|text| Value::from(*text)));
    // Parts end, of rows in lines that begin with the number of their first byte.
    let places = |interleaved: &Interleaved<'_>| {
        interleaved.places().map(|places| match places {
            Places::Lines(Buffer::U16(lines)) => lines.into_iter().map(u32::from).collect(),
            Places::Offsets(Buffer::U32(offsets)) => offsets,
            other => panic!("{other:?}"),
        })
    };
    let rows = |first: &EncodedColumn<'_>, second: &EncodedColumn<'_>| {
        let interleaved = Interleaved::new(first, second)?;
        let (mut row, mut heap) = (0, Vec::new());
        while row < interleaved.rows() {
            row = interleaved.append(row, 1, &mut heap);
        }
        Some((String::from_utf8(heap).unwrap(), places(&interleaved)))
    };
    let (keys, values) = (text(&["ab", "cd", "ef"]), text(&["x", "", "yz"]));
    let (keys, values) = (encode_column(FieldId(1), &keys), encode_column(FieldId(2), &values));
    assert_eq!(rows(&keys, &keys), Some(("ababcdcdefef".into(), None)));
    let line = [&[0, 0, 2, 3, 5, 5, 7, 9][..], &[9; 24]].concat();
    assert_eq!(rows(&keys, &values), Some(("abxcdefyz".into(), Some(line))));
    let long = text(&["x", &"y".repeat(40_000), &"z".repeat(40_000)]);
    let offsets = vec![0, 2, 3, 5, 40_005, 40_007, 80_007];
    let (_, places) = rows(&keys, &encode_column(FieldId(2), &long)).unwrap();
    assert_eq!(places, Some(offsets), "more than a line can tell");
    let constant = text(&["x", "x", "x"]);
    assert_eq!(rows(&keys, &encode_column(FieldId(2), &constant)), None);
    let shorter = text(&["x", "y"]);
    assert_eq!(rows(&keys, &encode_column(FieldId(2), &shorter)), None, "other rows");
}

#[test]
fn a_footer_that_cannot_be_right_is_a_broken_invariant() {
    let zone = |least: i64, greatest: i64, null_count| {
        let (least, greatest) = (Value::Int(least), Some(Value::Int(greatest)));
        ZoneEntry { least, greatest, null_count }
    };
    let column = |field, zones| ColumnLayout {
        field: FieldId(field),
        data_type: DataType::I64,
        encoding: Encoding::Plain { values: Extent { offset: 64, len: 800 } },
        validity: None,
        zones,
        sketch: None,
    };
    let footer = |columns, row_ids, value_files| Footer {
        table: TableId(7),
        segment: 9,
        schema_version: 1,
        rows: 100,
        order: RowOrder::Arrival,
        packing: Packing::None,
        row_ids,
        dead: None,
        columns,
        value_files,
        block_checksums: vec![1],
    };
    let dense = RowIds::Dense { first: 5 };
    let narrowed = |first, last| {
        let codes = Extent { offset: 64, len: 400 };
        RowIds::Narrowed { first, last, codes }
    };
    let used = |file, bytes| ValueFileUse { file, bytes };
    let decoded = |footer: Footer| Footer::decode(&footer.encode(), 1024, VERSION).map(drop);
    let sketched = |zones, values: u64| {
        let mut sketch = FieldSketch::default();
        sketch.extend((0..values).map(hash::of_word));
        ColumnLayout { sketch: Some(sketch), ..column(1, zones) }
    };
    let good = vec![sketched(vec![zone(3, 3, 0)], 1), column(2, vec![])];
    assert_eq!(decoded(footer(good, dense, vec![used(3, 512), used(4, 1024)])), Ok(()));
    for bad in [
        footer(vec![column(1, vec![]), column(1, vec![])], dense, vec![]),
        footer(vec![column(1, vec![zone(4, 3, 0)])], dense, vec![]),
        footer(vec![column(1, vec![zone(3, 4, 101)])], dense, vec![]),
        footer(vec![sketched(vec![zone(3, 4, 0)], 0)], dense, vec![]),
        footer(vec![sketched(vec![zone(3, 4, 0)], 300)], dense, vec![]),
        footer(vec![], narrowed(8, 7), vec![]),
        footer(vec![], RowIds::Dense { first: u64::MAX - 9 }, vec![]),
        footer(vec![], dense, vec![used(4, 512), used(4, 512)]),
        footer(vec![], dense, vec![used(4, 70_000)]),
    ] {
        let message = decoded(bad).unwrap_err().to_string();
        assert!(message.starts_with("segment 9: broken invariant: "), "{message}");
    }
}

/// What cannot be a sketch is named by its field, whatever the byte.
#[test]
fn a_damaged_sketch_is_refused_by_its_field() {
    let mut sketch = FieldSketch::default();
    sketch.extend((0..500).map(hash::of_word));
    let column = ColumnLayout {
        field: FieldId(7),
        data_type: DataType::I64,
        encoding: Encoding::Plain { values: Extent { offset: 64, len: 800 * 8 } },
        validity: None,
        zones: Vec::new(),
        sketch: Some(sketch),
    };
    let footer = Footer {
        table: TableId(7),
        segment: 9,
        schema_version: 1,
        rows: 800,
        order: RowOrder::Arrival,
        packing: Packing::None,
        row_ids: RowIds::Dense { first: 5 },
        dead: None,
        columns: vec![column],
        value_files: Vec::new(),
        block_checksums: vec![1],
    };
    let bytes = footer.encode();
    // Behind it are a count of no value files, and of one block with its checksum.
    let registers = bytes.len() - 10 - 768..bytes.len() - 10;
    let damaged = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Footer::decode(&bytes, 8192, VERSION).map_err(|e| e.to_string())
    };
    let form = registers.start - 1;
    assert_eq!(damaged(form, 9).unwrap_err(), "field 7: sketch: unknown form 9");
    assert_eq!(damaged(form - 1, 2).unwrap_err(), "field 7: 0 or 1 sketches, found 2");
    for at in registers {
        let decoded = damaged(at, 0xff);
        let message = decoded.expect_err("six bits that are all set");
        assert!(message.starts_with("field 7: sketch: broken invariant: register"), "{message}");
    }
    // Read by an older version, it is what no footer has.
    assert!(Footer::decode(&bytes, 8192, VERSION - 1).is_err());
}

#[test]
fn shared_heaps_survive_a_round_trip_and_refuse_what_does_not_fit() {
    let heap = Extent { offset: 512, len: 1000 };
    let offsets = Extent { offset: 64, len: 804 };
    let footer = |encoding| Footer {
        table: TableId(7),
        segment: 9,
        schema_version: 1,
        rows: 100,
        order: RowOrder::Key,
        packing: Packing::None,
        row_ids: RowIds::Dense { first: 5 },
        dead: None,
        columns: vec![ColumnLayout {
            field: FieldId(1),
            data_type: DataType::Bytes,
            encoding,
            validity: None,
            zones: Vec::new(),
            sketch: None,
        }],
        value_files: Vec::new(),
        block_checksums: vec![1],
    };
    let is_right = |encoding: Encoding| {
        let footer = footer(encoding);
        Footer::decode(&footer.encode(), 2048, VERSION).is_ok_and(|decoded| decoded == footer)
    };
    assert!(is_right(Encoding::Strided { width: 7, stride: 10, at: 3, heap }));
    assert!(is_right(Encoding::Interleaved { part: 1, offsets, heap }));
    let lines = Extent { offset: 64, len: 448 };
    assert!(is_right(Encoding::Lined { part: 1, lines, heap }));
    for wrong in [
        Encoding::Lined { part: 2, lines, heap },
        Encoding::Lined { part: 0, lines: Extent { len: 384, ..lines }, heap },
        Encoding::Lined { part: 0, lines, heap: Extent { offset: 1088, len: 1000 } },
        Encoding::Strided { width: 8, stride: 10, at: 3, heap },
        Encoding::Strided { width: u32::MAX, stride: 10, at: 3, heap },
        Encoding::Strided { width: 7, stride: 11, at: 3, heap },
        Encoding::Interleaved { part: 2, offsets, heap },
        Encoding::Interleaved { part: 0, offsets: Extent { len: 404, ..offsets }, heap },
        Encoding::Interleaved { part: 0, offsets, heap: Extent { offset: 1088, len: 1000 } },
    ] {
        assert!(!is_right(wrong.clone()), "{wrong:?}");
    }
}

/// Segments of one table encode a field in different ways: their sketches see the same values.
#[test]
fn a_value_has_one_hash_whatever_its_encoding() {
    let narrow = |row: i64| Value::Int(row % 50 - 20);
    let text = |row: i64| Value::Text(if row % 3 == 0 { "red".into() } else { "green".into() });
    let columns = [
        column(DataType::I64, (0..9_000).map(narrow)),
        column(DataType::I32, (0..9_000).map(narrow)),
        column(DataType::I64, (0..9_000).map(|row| Value::Int(row - 4_000))),
        column(DataType::I64, (0..9_000).map(|_| Value::Int(-7))),
        column(DataType::U64, (0..9_000).map(|row| Value::Uint(u64::MAX - row % 300))),
        column(DataType::Text, (0..9_000).map(text)),
    ];
    for column in &columns {
        let encoded = encode_column(FieldId(1), column);
        assert!(!matches!(encoded.values, Encoded::Plain(_)), "{:?}", encoded.values);
        let mut plain = FieldSketch::default();
        add_values(&mut plain, &ColumnSlice::from(column));
        assert_eq!(sketch_of_column(column, &encoded), plain, "{:?}", column.data_type);
    }
}
