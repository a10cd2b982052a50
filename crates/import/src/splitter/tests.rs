use super::*;

fn chunks(text: &[u8], chunk_bytes: usize) -> Vec<Vec<u8>> {
    let source = Source::new(Box::new(std::io::Cursor::new(text.to_vec())), None).unwrap();
    let mut splitter = Splitter::new(source, Dialect::Csv(Csv::commas()), chunk_bytes);
    let mut chunks = Vec::new();
    while let Some(chunk) = splitter.next_chunk().unwrap() {
        chunks.push(chunk.bytes().to_vec());
        splitter.recycle(chunk.into_buffer());
    }
    chunks
}

#[test]
fn chunks_are_whole_records() {
    let text = b"a,b\n\"x\ny\",\"\"\"\n\"\nc,d\"e\n\"f\n\n,\n\",\nlast";
    let records: [&[u8]; 5] =
        [b"a,b\n", b"\"x\ny\",\"\"\"\n\"\n", b"c,d\"e\n", b"\"f\n\n,\n\",\n", b"last"];
    for chunk_bytes in 1..text.len() + 2 {
        let chunks = chunks(text, chunk_bytes);
        assert_eq!(chunks.concat(), text);
        let mut ends = Vec::new();
        chunks.iter().fold(0, |at, chunk| {
            ends.push(at + chunk.len());
            at + chunk.len()
        });
        let mut record_ends = Vec::new();
        records.iter().fold(0, |at, record| {
            record_ends.push(at + record.len());
            at + record.len()
        });
        assert!(ends.iter().all(|end| record_ends.contains(end)), "{chunk_bytes}: {ends:?}");
    }
    assert_eq!(chunks(text, text.len() + 1).len(), 1);
    assert!(chunks(text, 1).len() >= 4);
}

#[test]
fn an_empty_file_has_no_chunk() {
    assert!(chunks(b"", 10).is_empty());
}
