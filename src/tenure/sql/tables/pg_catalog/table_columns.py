"""The columns of PostgreSQL 18's catalogs that are tables there.

    name oid: column type!, ...       `!`: never null

Types that do not exist here (inet, pg_lsn, anyarray) are declared as text.

Walk: `sql.tables.pg_catalog.shapes` reads the declarations.
"""

TABLES = """
pg_aggregate 2600:
    aggfnoid regproc!, aggkind "char"!, aggnumdirectargs int2!, aggtransfn regproc!, aggfinalfn
    regproc!, aggcombinefn regproc!, aggserialfn regproc!, aggdeserialfn regproc!, aggmtransfn
    regproc!, aggminvtransfn regproc!, aggmfinalfn regproc!, aggfinalextra bool!, aggmfinalextra
    bool!, aggfinalmodify "char"!, aggmfinalmodify "char"!, aggsortop oid!, aggtranstype oid!,
    aggtransspace int4!, aggmtranstype oid!, aggmtransspace int4!, agginitval text, aggminitval text
pg_am 2601: oid oid!, amname name!, amhandler regproc!, amtype "char"!
pg_amop 2602:
    oid oid!, amopfamily oid!, amoplefttype oid!, amoprighttype oid!, amopstrategy int2!,
    amoppurpose "char"!, amopopr oid!, amopmethod oid!, amopsortfamily oid!
pg_amproc 2603:
    oid oid!, amprocfamily oid!, amproclefttype oid!, amprocrighttype oid!, amprocnum int2!, amproc
    regproc!
pg_attrdef 2604: oid oid!, adrelid oid!, adnum int2!, adbin pg_node_tree!
pg_attribute 1249:
    attrelid oid!, attname name!, atttypid oid!, attlen int2!, attnum int2!, atttypmod int4!,
    attndims int2!, attbyval bool!, attalign "char"!, attstorage "char"!, attcompression "char"!,
    attnotnull bool!, atthasdef bool!, atthasmissing bool!, attidentity "char"!, attgenerated
    "char"!, attisdropped bool!, attislocal bool!, attinhcount int2!, attcollation oid!,
    attstattarget int2, attacl aclitem[], attoptions text[], attfdwoptions text[], attmissingval
    text
pg_auth_members 1261:
    oid oid!, roleid oid!, member oid!, grantor oid!, admin_option bool!, inherit_option bool!,
    set_option bool!
pg_authid 1260:
    oid oid!, rolname name!, rolsuper bool!, rolinherit bool!, rolcreaterole bool!, rolcreatedb
    bool!, rolcanlogin bool!, rolreplication bool!, rolbypassrls bool!, rolconnlimit int4!,
    rolpassword text, rolvaliduntil timestamptz
pg_cast 2605:
    oid oid!, castsource oid!, casttarget oid!, castfunc oid!, castcontext "char"!, castmethod
    "char"!
pg_class 1259:
    oid oid!, relname name!, relnamespace oid!, reltype oid!, reloftype oid!, relowner oid!, relam
    oid!, relfilenode oid!, reltablespace oid!, relpages int4!, reltuples float4!, relallvisible
    int4!, relallfrozen int4!, reltoastrelid oid!, relhasindex bool!, relisshared bool!,
    relpersistence "char"!, relkind "char"!, relnatts int2!, relchecks int2!, relhasrules bool!,
    relhastriggers bool!, relhassubclass bool!, relrowsecurity bool!, relforcerowsecurity bool!,
    relispopulated bool!, relreplident "char"!, relispartition bool!, relrewrite oid!, relfrozenxid
    xid!, relminmxid xid!, relacl aclitem[], reloptions text[], relpartbound pg_node_tree
pg_collation 3456:
    oid oid!, collname name!, collnamespace oid!, collowner oid!, collprovider "char"!,
    collisdeterministic bool!, collencoding int4!, collcollate text, collctype text, colllocale
    text, collicurules text, collversion text
pg_constraint 2606:
    oid oid!, conname name!, connamespace oid!, contype "char"!, condeferrable bool!, condeferred
    bool!, conenforced bool!, convalidated bool!, conrelid oid!, contypid oid!, conindid oid!,
    conparentid oid!, confrelid oid!, confupdtype "char"!, confdeltype "char"!, confmatchtype
    "char"!, conislocal bool!, coninhcount int2!, connoinherit bool!, conperiod bool!, conkey
    int2[], confkey int2[], conpfeqop oid[], conppeqop oid[], conffeqop oid[], confdelsetcols
    int2[], conexclop oid[], conbin pg_node_tree
pg_conversion 2607:
    oid oid!, conname name!, connamespace oid!, conowner oid!, conforencoding int4!, contoencoding
    int4!, conproc regproc!, condefault bool!
pg_database 1262:
    oid oid!, datname name!, datdba oid!, encoding int4!, datlocprovider "char"!, datistemplate
    bool!, datallowconn bool!, dathasloginevt bool!, datconnlimit int4!, datfrozenxid xid!,
    datminmxid xid!, dattablespace oid!, datcollate text!, datctype text!, datlocale text,
    daticurules text, datcollversion text, datacl aclitem[]
pg_db_role_setting 2964: setdatabase oid!, setrole oid!, setconfig text[]
pg_default_acl 826:
    oid oid!, defaclrole oid!, defaclnamespace oid!, defaclobjtype "char"!, defaclacl aclitem[]!
pg_depend 2608:
    classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, refobjsubid int4!,
    deptype "char"!
pg_description 2609: objoid oid!, classoid oid!, objsubid int4!, description text!
pg_enum 3501: oid oid!, enumtypid oid!, enumsortorder float4!, enumlabel name!
pg_event_trigger 3466:
    oid oid!, evtname name!, evtevent name!, evtowner oid!, evtfoid oid!, evtenabled "char"!,
    evttags text[]
pg_extension 3079:
    oid oid!, extname name!, extowner oid!, extnamespace oid!, extrelocatable bool!, extversion
    text!, extconfig oid[], extcondition text[]
pg_foreign_data_wrapper 2328:
    oid oid!, fdwname name!, fdwowner oid!, fdwhandler oid!, fdwvalidator oid!, fdwacl aclitem[],
    fdwoptions text[]
pg_foreign_server 1417:
    oid oid!, srvname name!, srvowner oid!, srvfdw oid!, srvtype text, srvversion text, srvacl
    aclitem[], srvoptions text[]
pg_foreign_table 3118: ftrelid oid!, ftserver oid!, ftoptions text[]
pg_index 2610:
    indexrelid oid!, indrelid oid!, indnatts int2!, indnkeyatts int2!, indisunique bool!,
    indnullsnotdistinct bool!, indisprimary bool!, indisexclusion bool!, indimmediate bool!,
    indisclustered bool!, indisvalid bool!, indcheckxmin bool!, indisready bool!, indislive bool!,
    indisreplident bool!, indkey int2vector!, indcollation oidvector!, indclass oidvector!,
    indoption int2vector!, indexprs pg_node_tree, indpred pg_node_tree
pg_inherits 2611: inhrelid oid!, inhparent oid!, inhseqno int4!, inhdetachpending bool!
pg_init_privs 3394:
    objoid oid!, classoid oid!, objsubid int4!, privtype "char"!, initprivs aclitem[]!
pg_language 2612:
    oid oid!, lanname name!, lanowner oid!, lanispl bool!, lanpltrusted bool!, lanplcallfoid oid!,
    laninline oid!, lanvalidator oid!, lanacl aclitem[]
pg_largeobject 2613: loid oid!, pageno int4!, data bytea!
pg_largeobject_metadata 2995: oid oid!, lomowner oid!, lomacl aclitem[]
pg_namespace 2615: oid oid!, nspname name!, nspowner oid!, nspacl aclitem[]
pg_opclass 2616:
    oid oid!, opcmethod oid!, opcname name!, opcnamespace oid!, opcowner oid!, opcfamily oid!,
    opcintype oid!, opcdefault bool!, opckeytype oid!
pg_operator 2617:
    oid oid!, oprname name!, oprnamespace oid!, oprowner oid!, oprkind "char"!, oprcanmerge bool!,
    oprcanhash bool!, oprleft oid!, oprright oid!, oprresult oid!, oprcom oid!, oprnegate oid!,
    oprcode regproc!, oprrest regproc!, oprjoin regproc!
pg_opfamily 2753: oid oid!, opfmethod oid!, opfname name!, opfnamespace oid!, opfowner oid!
pg_parameter_acl 6243: oid oid!, parname text!, paracl aclitem[]
pg_partitioned_table 3350:
    partrelid oid!, partstrat "char"!, partnatts int2!, partdefid oid!, partattrs int2vector!,
    partclass oidvector!, partcollation oidvector!, partexprs pg_node_tree
pg_policy 3256:
    oid oid!, polname name!, polrelid oid!, polcmd "char"!, polpermissive bool!, polroles oid[]!,
    polqual pg_node_tree, polwithcheck pg_node_tree
pg_proc 1255:
    oid oid!, proname name!, pronamespace oid!, proowner oid!, prolang oid!, procost float4!,
    prorows float4!, provariadic oid!, prosupport regproc!, prokind "char"!, prosecdef bool!,
    proleakproof bool!, proisstrict bool!, proretset bool!, provolatile "char"!, proparallel
    "char"!, pronargs int2!, pronargdefaults int2!, prorettype oid!, proargtypes oidvector!,
    proallargtypes oid[], proargmodes "char"[], proargnames text[], proargdefaults pg_node_tree,
    protrftypes oid[], prosrc text!, probin text, prosqlbody pg_node_tree, proconfig text[], proacl
    aclitem[]
pg_publication 6104:
    oid oid!, pubname name!, pubowner oid!, puballtables bool!, pubinsert bool!, pubupdate bool!,
    pubdelete bool!, pubtruncate bool!, pubviaroot bool!, pubgencols "char"!
pg_publication_namespace 6237: oid oid!, pnpubid oid!, pnnspid oid!
pg_publication_rel 6106:
    oid oid!, prpubid oid!, prrelid oid!, prqual pg_node_tree, prattrs int2vector
pg_range 3541:
    rngtypid oid!, rngsubtype oid!, rngmultitypid oid!, rngcollation oid!, rngsubopc oid!,
    rngcanonical regproc!, rngsubdiff regproc!
pg_replication_origin 6000: roident oid!, roname text!
pg_rewrite 2618:
    oid oid!, rulename name!, ev_class oid!, ev_type "char"!, ev_enabled "char"!, is_instead bool!,
    ev_qual pg_node_tree!, ev_action pg_node_tree!
pg_seclabel 3596: objoid oid!, classoid oid!, objsubid int4!, provider text!, label text!
pg_sequence 2224:
    seqrelid oid!, seqtypid oid!, seqstart int8!, seqincrement int8!, seqmax int8!, seqmin int8!,
    seqcache int8!, seqcycle bool!
pg_shdepend 1214:
    dbid oid!, classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, deptype
    "char"!
pg_shdescription 2396: objoid oid!, classoid oid!, description text!
pg_shseclabel 3592: objoid oid!, classoid oid!, provider text!, label text!
pg_statistic 2619:
    starelid oid!, staattnum int2!, stainherit bool!, stanullfrac float4!, stawidth int4!,
    stadistinct float4!, stakind1 int2!, stakind2 int2!, stakind3 int2!, stakind4 int2!, stakind5
    int2!, staop1 oid!, staop2 oid!, staop3 oid!, staop4 oid!, staop5 oid!, stacoll1 oid!, stacoll2
    oid!, stacoll3 oid!, stacoll4 oid!, stacoll5 oid!, stanumbers1 float4[], stanumbers2 float4[],
    stanumbers3 float4[], stanumbers4 float4[], stanumbers5 float4[], stavalues1 text, stavalues2
    text, stavalues3 text, stavalues4 text, stavalues5 text
pg_statistic_ext 3381:
    oid oid!, stxrelid oid!, stxname name!, stxnamespace oid!, stxowner oid!, stxkeys int2vector!,
    stxstattarget int2, stxkind "char"[]!, stxexprs pg_node_tree
pg_statistic_ext_data 3429:
    stxoid oid!, stxdinherit bool!, stxdndistinct bytea, stxddependencies bytea, stxdmcv bytea,
    stxdexpr text
pg_subscription 6100:
    oid oid!, subdbid oid!, subskiplsn text!, subname name!, subowner oid!, subenabled bool!,
    subbinary bool!, substream "char"!, subtwophasestate "char"!, subdisableonerr bool!,
    subpasswordrequired bool!, subrunasowner bool!, subfailover bool!, subconninfo text!,
    subslotname name, subsynccommit text!, subpublications text[]!, suborigin text
pg_subscription_rel 6102: srsubid oid!, srrelid oid!, srsubstate "char"!, srsublsn text
pg_tablespace 1213: oid oid!, spcname name!, spcowner oid!, spcacl aclitem[], spcoptions text[]
pg_transform 3576: oid oid!, trftype oid!, trflang oid!, trffromsql regproc!, trftosql regproc!
pg_trigger 2620:
    oid oid!, tgrelid oid!, tgparentid oid!, tgname name!, tgfoid oid!, tgtype int2!, tgenabled
    "char"!, tgisinternal bool!, tgconstrrelid oid!, tgconstrindid oid!, tgconstraint oid!,
    tgdeferrable bool!, tginitdeferred bool!, tgnargs int2!, tgattr int2vector!, tgargs bytea!,
    tgqual pg_node_tree, tgoldtable name, tgnewtable name
pg_ts_config 3602: oid oid!, cfgname name!, cfgnamespace oid!, cfgowner oid!, cfgparser oid!
pg_ts_config_map 3603: mapcfg oid!, maptokentype int4!, mapseqno int4!, mapdict oid!
pg_ts_dict 3600:
    oid oid!, dictname name!, dictnamespace oid!, dictowner oid!, dicttemplate oid!, dictinitoption
    text
pg_ts_parser 3601:
    oid oid!, prsname name!, prsnamespace oid!, prsstart regproc!, prstoken regproc!, prsend
    regproc!, prsheadline regproc!, prslextype regproc!
pg_ts_template 3764:
    oid oid!, tmplname name!, tmplnamespace oid!, tmplinit regproc!, tmpllexize regproc!
pg_type 1247:
    oid oid!, typname name!, typnamespace oid!, typowner oid!, typlen int2!, typbyval bool!, typtype
    "char"!, typcategory "char"!, typispreferred bool!, typisdefined bool!, typdelim "char"!,
    typrelid oid!, typsubscript regproc!, typelem oid!, typarray oid!, typinput regproc!, typoutput
    regproc!, typreceive regproc!, typsend regproc!, typmodin regproc!, typmodout regproc!,
    typanalyze regproc!, typalign "char"!, typstorage "char"!, typnotnull bool!, typbasetype oid!,
    typtypmod int4!, typndims int4!, typcollation oid!, typdefaultbin pg_node_tree, typdefault text,
    typacl aclitem[]
pg_user_mapping 1418: oid oid!, umuser oid!, umserver oid!, umoptions text[]
"""
